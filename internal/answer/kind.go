package answer

import (
	"bytes"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/skewproof/skewproof/internal/history"
)

// protobufMagic starts every body of Kubernetes' protobuf envelope (k8s.io/apimachinery/pkg/runtime/serializer/protobuf).
var protobufMagic = []byte("k8s\x00")

// Inspect returns what kind of body it is, without decoding the API object in it, and the object itself if it is a
// Status. It reads JSON and protobuf.
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

// jsonKind reads no further than to the top-level "kind", which servers write near the start of what they encode.
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
