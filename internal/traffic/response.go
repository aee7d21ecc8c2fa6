package traffic

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/skewproof/skewproof/internal/history"
)

// maxText bounds how much of a body that is no API object is kept as Operation.Message.
const maxText = 300

// protobufMagic starts every body of Kubernetes' protobuf envelope (k8s.io/apimachinery/pkg/runtime/serializer/protobuf).
var protobufMagic = []byte("k8s\x00")

// readBody fills in what a complete response says. A discovery document is parsed once for each hash.
func (t *recordingTransport) readBody(op *history.Operation, contentType string, body []byte) {
	got := mediaType(contentType)
	if op.Accept != "" {
		op.MediaType = got
	}
	kind, status := inspect(AsJSON(got, body))
	op.Body = bodyOf(kind, body)
	switch {
	case status != nil:
		op.Reason, op.Message = string(status.Reason), status.Message
	case op.Body == history.BodyText:
		op.Message = strings.ToValidUTF8(string(body[:min(len(body), maxText)]), "\uFFFD")
	}
	if op.Status == http.StatusNotFound {
		op.Missing = ClassifyMissing(status)
	}
	aggregated := op.Verb != history.VerbLegacy && op.Body == history.BodyDiscovery && strings.Contains(contentType, asDiscovery)
	if op.Status == http.StatusOK && (aggregated || op.Verb == history.VerbDiscovery || op.Verb == history.VerbNoPeer) {
		op.Document = hashOf(body)
		if t.recorder.HasDocument(op.Document) {
			return
		}
		t.keep(op, body, ParseDiscovery)
	}
	if parse := parsers[op.Verb]; parse != nil && op.Status == http.StatusOK {
		op.Document, op.Message = hashOf(body), ""
		if !t.recorder.HasDocument(op.Document) {
			t.keep(op, body, parse)
		}
	}
}

// parsers read the documents that are not aggregated discovery.
var parsers = map[string]func([]byte) (history.Document, error){history.VerbOpenAPI: ParseOpenAPI, history.VerbLegacy: ParseLegacy}

// keep records a document that nobody was given before. Of one that cannot be read the hash stays, and why.
func (t *recordingTransport) keep(op *history.Operation, body []byte, parse func([]byte) (history.Document, error)) {
	doc, err := parse(body)
	if err != nil {
		op.Message = err.Error()
		return
	}
	t.documents.known.Store(doc.Hash, doc)
	t.recorder.Document(doc)
}

// inspect returns the kind of an API object, JSON or protobuf, without decoding it, and the object itself if it is a
// Status. Anything else has no kind.
func inspect(body []byte) (string, *metav1.Status) {
	if bytes.HasPrefix(body, protobufMagic) {
		return inspectProtobuf(body[len(protobufMagic):])
	}
	kind := jsonKind(body)
	if kind != "Status" {
		return kind, nil
	}
	var status metav1.Status
	if json.Unmarshal(body, &status) != nil {
		return "", nil
	}
	return kind, &status
}

func inspectProtobuf(envelope []byte) (string, *metav1.Status) {
	var unknown runtime.Unknown
	if unknown.Unmarshal(envelope) != nil {
		return "", nil
	}
	if unknown.Kind != "Status" {
		return unknown.Kind, nil
	}
	var status metav1.Status
	if status.Unmarshal(unknown.Raw) != nil {
		return "", nil
	}
	return unknown.Kind, &status
}

// jsonKind reads no further than to the top-level "kind", which servers write near the start of what they encode.
func jsonKind(body []byte) string {
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

func bodyOf(kind string, body []byte) history.Body {
	switch kind {
	case "":
		if len(body) == 0 {
			return history.BodyNone
		}
		return history.BodyText
	case "Status":
		return history.BodyStatus
	case "Table":
		return history.BodyTable
	case "APIGroupDiscoveryList", "APIGroupList", "APIGroup", "APIResourceList", "APIVersions":
		return history.BodyDiscovery
	}
	if strings.HasSuffix(kind, "List") {
		return history.BodyList
	}
	return history.BodyObject
}
