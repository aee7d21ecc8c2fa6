package discovery

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/kube-openapi/pkg/handler3"
)

// These are the media types of an OpenAPI v3 description. Clients may ask for protobuf with either
// name. The answer has the first name (k8s.io/kube-openapi, pkg/handler3).
const (
	openAPIProtobuf    = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
	openAPIProtobufOld = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
)

var openAPITypes = func() (types []runtime.SerializerInfo) {
	for _, mediaType := range []string{runtime.ContentTypeJSON, openAPIProtobuf, openAPIProtobufOld} {
		main, sub, _ := strings.Cut(mediaType, "/")
		types = append(types, runtime.SerializerInfo{MediaType: mediaType, MediaTypeType: main, MediaTypeSubType: sub})
	}
	return types
}()

// OpenAPIDescription answers requests for the OpenAPI v3 description of one group version. It is
// immutable and safe for concurrent use.
type OpenAPIDescription struct {
	tag      string
	json     *representation
	protobuf func() (*representation, error)
}

// NewOpenAPIDescription returns a description with this JSON. The tag is the hash in its URL. The
// tag must change with the JSON.
func NewOpenAPIDescription(tag string, body []byte) *OpenAPIDescription {
	return &OpenAPIDescription{
		tag:  tag,
		json: newRepresentation(runtime.ContentTypeJSON, "no-cache, private", tag, body),
		protobuf: sync.OnceValues(func() (*representation, error) {
			encoded, err := toProtobuf(body)
			if err != nil {
				return nil, err
			}
			return newRepresentation(openAPIProtobuf, "no-cache, private", tag+"-protobuf", encoded), nil
		}),
	}
}

// toProtobuf converts a description as a kube-apiserver does. The converter panics at some invalid
// descriptions, and a peer's description may be invalid.
func toProtobuf(body []byte) (encoded []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("encode an OpenAPI description in protobuf: the converter panicked: %v", p)
		}
	}()
	if encoded, err = handler3.ToV3ProtoBinary(body); err != nil {
		return nil, fmt.Errorf("encode an OpenAPI description in protobuf: %w", err)
	}
	return encoded, nil
}

// Tag is the hash in the URL of the description, and its entity tag in JSON.
func (d *OpenAPIDescription) Tag() string { return d.tag }

// Size is the length of the JSON in bytes.
func (d *OpenAPIDescription) Size() int { return len(d.json.body) }

// Serve answers GET and HEAD in JSON or protobuf. If the parameter hash of a request is the tag,
// clients and caches may keep the answer for a year. Any other hash belongs to an older description
// or to another server's. Then the answer may not be reused without asking again. A kube-apiserver
// redirects such a request to the present hash. Serve does not: behind a load balancer, the server
// that gets the next request may have yet another hash, and redirect again.
//
// The error says why the description cannot be encoded. Then nothing was written.
func (d *OpenAPIDescription) Serve(w http.ResponseWriter, r *http.Request, now time.Time) error {
	options, ok := negotiation.NegotiateMediaTypeOptions(r.Header.Get("Accept"), openAPITypes, negotiation.DefaultEndpointRestrictions)
	if !ok {
		writeStatus(w, r, metav1.Status{
			Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
			Message: "only " + runtime.ContentTypeJSON + " and " + openAPIProtobuf + " can be had",
		})
		return nil
	}
	encoding := d.json
	if options.Accepted.MediaType != runtime.ContentTypeJSON {
		var err error
		if encoding, err = d.protobuf(); err != nil {
			return err
		}
	}
	if r.URL.Query().Get("hash") == d.tag {
		forever := *encoding
		forever.cacheControl = "public, immutable"
		w.Header().Set("Expires", now.AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
		encoding = &forever
	}
	encoding.serve(w, r)
	return nil
}
