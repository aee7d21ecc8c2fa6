package answer

import (
	"bytes"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/skewproof/skewproof/internal/history"
)

// protobufMagic starts every body of Kubernetes' protobuf envelope
// (k8s.io/apimachinery/pkg/runtime/serializer/protobuf).
var protobufMagic = []byte("k8s\x00")

// Inspect returns what kind of body it is, without decoding the API object in it, and the object
// itself if it is a Status. It reads JSON and protobuf.
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

// kindOf is the kind of an API object, "" for anything else, and the object if it is a Status.
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

// statusStart is how apiservers begin a Status: it is the answer that a run reads most often.
var statusStart = []byte(`{"kind":"Status",`)

// jsonKind reads no further than to the top-level "kind", which servers write near the start of
// what they encode.
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

// maxText bounds how much of a body that is no API object is kept.
const maxText = 300

// Excerpt is the beginning of a body that is no API object, as Operation.Message keeps it.
func Excerpt(body []byte) string {
	return strings.ToValidUTF8(string(body[:min(len(body), maxText)]), "\uFFFD")
}

// noResourceMessage starts the message of a 404 that is not about an object. A request that no
// handler is installed for gets it without details; an error relayed by way of a client repeats it
// with the details of the request (k8s.io/apimachinery/pkg/api/errors, NewGenericServerResponse).
const noResourceMessage = "the server could not find the requested resource"

// ClassifyMissing says what a 404 was about. Only a Status that names a thing is about an object:
// the code that wrote it (errors.NewNotFound) had found the resource, looked for the object or its
// namespace, and missed it. Any other answer, text of the mux and empty bodies included, means that
// nothing here serves the resource. status is nil if the body was no Status.
//
// One answer cannot be told apart by its body: an unknown subresource of a custom resource is
// reported as if its object was missing
// (k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go, ServeHTTP). It counts as
// MissingObject, so that a false 404 is never claimed without proof.
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
