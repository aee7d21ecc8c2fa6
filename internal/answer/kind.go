package answer

import (
	"bytes"
	"encoding/json"
	"mime"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/skewproof/skewproof/internal/history"
)

// protobufMagic starts every body of Kubernetes' protobuf envelope
// (k8s.io/apimachinery/pkg/runtime/serializer/protobuf).
var protobufMagic = []byte("k8s\x00")

// Inspect returns the kind of a body, and the object if it is a Status. It reads JSON and protobuf,
// and does not decode other objects.
func Inspect(body []byte) (history.Body, *metav1.Status) {
	kind, status := kindOf(body)
	switch kind {
	case "":
		if len(body) == 0 {
			return history.BodyNone, nil
		}
		return history.BodyText, nil
	case "Status":
		return history.BodyStatus, status
	case "Table":
		return history.BodyTable, nil
	case "APIGroupDiscoveryList", "APIGroupList", "APIGroup", "APIResourceList", "APIVersions":
		return history.BodyDiscovery, nil
	}
	if strings.HasSuffix(kind, "List") {
		return history.BodyList, nil
	}
	return history.BodyObject, nil
}

// kindOf returns the kind of an API object, and the object if it is a Status. It returns "" for any
// other body.
func kindOf(body []byte) (string, *metav1.Status) {
	var status metav1.Status
	if envelope, isProtobuf := bytes.CutPrefix(body, protobufMagic); isProtobuf {
		var unknown runtime.Unknown
		if unknown.Unmarshal(envelope) != nil {
			return "", nil
		}
		if unknown.Kind == "Status" && status.Unmarshal(unknown.Raw) != nil {
			return "", nil
		}
		return unknown.Kind, &status
	}
	kind := jsonKind(body)
	if kind == "Status" && json.Unmarshal(body, &status) != nil {
		return "", nil
	}
	return kind, &status
}

// statusStart is the start of a Status from an apiserver, the answer that a run reads most often.
var statusStart = []byte(`{"kind":"Status",`)

// jsonKind reads up to the top-level "kind", which servers write near the start.
func jsonKind(body []byte) string {
	switch {
	case bytes.HasPrefix(body, statusStart):
		return "Status"
	case len(body) > 0 && body[0] > ' ' && body[0] != '{':
		return ""
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return ""
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return ""
		}
		if key == "kind" {
			value, _ := dec.Token()
			kind, _ := value.(string)
			return kind
		}
		var skipped json.RawMessage
		if dec.Decode(&skipped) != nil {
			return ""
		}
	}
	return ""
}

// maxText is how much is kept of a body that is not an API object, in bytes.
const maxText = 300

// Excerpt returns the beginning of a body that is not an API object, for Operation.Message.
func Excerpt(body []byte) string {
	return strings.ToValidUTF8(string(body[:min(len(body), maxText)]), "\uFFFD")
}

// noResourceMessage starts the message of a 404 that is not about an object. The 404 for a path
// without a handler has this message and no details. A relayed error repeats the message, with the
// details of the request (k8s.io/apimachinery/pkg/api/errors, NewGenericServerResponse).
const noResourceMessage = "the server could not find the requested resource"

// ClassifyMissing returns what is missing according to a 404. Only a Status with a name or kind in
// its details is about an object: the server (errors.NewNotFound) has the resource, but not the
// object or its namespace. Any other answer, also text or an empty body, means that the server does
// not have the resource. status is nil if the body was not a Status.
//
// One case is ambiguous: for an unknown subresource of a custom resource, the Status names the
// object (k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go, ServeHTTP). It
// counts as MissingObject, so that a false 404 is never claimed without proof.
func ClassifyMissing(status *metav1.Status) history.Missing {
	switch {
	case status == nil,
		status.Reason != metav1.StatusReasonNotFound,
		status.Details == nil,
		status.Details.Name == "" && status.Details.Kind == "",
		strings.HasPrefix(status.Message, noResourceMessage):
		return history.MissingResource
	default:
		return history.MissingObject
	}
}

// selfDescribedCBOR is the tag before every CBOR body of a server (RFC 8949, 3.4.6).
var selfDescribedCBOR = []byte{0xd9, 0xd9, 0xf7}

// ContentOf reports whether a body is whole. An empty body is broken in JSON, CBOR and protobuf.
// For other types, the result is unknown: a part of YAML or text can be valid YAML or text.
func ContentOf(contentType string, body []byte) history.Content {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return history.ContentUnknown
	}
	var whole bool
	switch kind {
	case runtime.ContentTypeJSON:
		whole = json.Valid(body)
	case runtime.ContentTypeCBOR:
		var object any
		whole = direct.Unmarshal(bytes.TrimPrefix(body, selfDescribedCBOR), &object) == nil
	case runtime.ContentTypeProtobuf:
		var unknown runtime.Unknown
		envelope, magic := bytes.CutPrefix(body, protobufMagic)
		whole = magic && unknown.Unmarshal(envelope) == nil
	default:
		return history.ContentUnknown
	}
	if whole {
		return history.ContentWhole
	}
	return history.ContentBroken
}

// Accepted returns an Accept header for the record: "" if every type in it is JSON or */*.
func Accepted(accept string) string {
	for one := range strings.SplitSeq(accept, ",") {
		switch kind, _, _ := strings.Cut(one, ";"); strings.TrimSpace(kind) {
		case "", runtime.ContentTypeJSON, "*/*":
		default:
			return accept
		}
	}
	return ""
}

// MediaType returns the media type of a Content-Type header; "" if it is JSON or there is none.
func MediaType(contentType string) string {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil || kind == runtime.ContentTypeJSON {
		return ""
	}
	return kind
}

// AsJSON converts an API object in YAML or CBOR to JSON. It returns other bodies unchanged, also
// those that cannot be parsed.
func AsJSON(mediaType string, body []byte) []byte {
	switch mediaType {
	case runtime.ContentTypeYAML:
		if converted, err := yaml.ToJSON(body); err == nil {
			return converted
		}
	case runtime.ContentTypeCBOR:
		var object any
		if direct.Unmarshal(body, &object) == nil {
			if converted, err := json.Marshal(object); err == nil {
				return converted
			}
		}
	}
	return body
}
