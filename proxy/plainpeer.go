package proxy

import (
	"bytes"
	"io"
	"mime"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// maxStatus bounds how much of a 404 is read. A Status is shorter.
const maxStatus = 16 << 10

// protobufMagic starts every body in Kubernetes' protobuf envelope.
var protobufMagic = []byte("k8s\x00")

// lacksResource reports whether a 404 of a kube-apiserver says that the server does not serve the
// resource. The alternative is that it serves the resource, and has no such object. What was
// recorded of released versions:
//
//	versions       asked for                        answer
//	v1.30 to v1.37 a group that nobody has          text/plain, "404 page not found"
//	v1.38          a group that nobody has          Status, reason NotFound, without details
//	all            a version, resource or           Status, reason NotFound, with empty details
//	               subresource of a known group
//	all            an object that does not exist    Status, reason NotFound, with the object's name
//	                                                or kind in its details
//
// A Status can come as JSON, YAML or protobuf. One in CBOR is not read, and counts as an answer
// about an object. lacksResource leaves the body as it was.
func lacksResource(answer *http.Response) bool {
	media, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if answer.StatusCode != http.StatusNotFound || err != nil {
		return false
	}
	if media == "text/plain" {
		return true
	}
	begun, err := io.ReadAll(io.LimitReader(answer.Body, maxStatus))
	rest := answer.Body
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(begun), rest), rest}
	if err != nil {
		return false // whoever reads the body meets the error again
	}
	var status metav1.Status
	if envelope, ok := bytes.CutPrefix(begun, protobufMagic); ok {
		var unknown runtime.Unknown
		if unknown.Unmarshal(envelope) != nil || unknown.Kind != "Status" || status.Unmarshal(unknown.Raw) != nil {
			return false
		}
	} else if yaml.Unmarshal(begun, &status) != nil || status.Kind != "Status" {
		return false
	}
	return status.Reason == metav1.StatusReasonNotFound &&
		(status.Details == nil || status.Details.Name == "" && status.Details.Kind == "")
}
