package traffic

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/internal/answer"
	"github.com/skewproof/skewproof/internal/history"
)

// readBody fills in the fields of a complete response. It parses each discovery document once.
func (t *recordingTransport) readBody(op *history.Operation, contentType string, body []byte) {
	got := answer.MediaType(contentType)
	if op.Accept != "" {
		op.MediaType = got
	}
	var status *metav1.Status
	op.Body, status = answer.Inspect(answer.AsJSON(got, body))
	switch {
	case status != nil:
		op.Reason, op.Message = string(status.Reason), status.Message
	case op.Body == history.BodyText:
		op.Message = answer.Excerpt(body)
	}
	if op.Status == http.StatusNotFound {
		op.Missing = answer.ClassifyMissing(status)
	}
	aggregated := op.Verb != history.VerbLegacy && op.Body == history.BodyDiscovery &&
		strings.Contains(contentType, "as=APIGroupDiscoveryList")
	if op.Status == http.StatusOK && (aggregated || op.Verb == history.VerbDiscovery || op.Verb == history.VerbNoPeer) {
		op.Document = answer.Hash(body)
		if t.recorder.HasDocument(op.Document) {
			return
		}
		t.keep(op, body, answer.ParseDiscovery)
	}
	if parse := parsers[op.Verb]; parse != nil && op.Status == http.StatusOK {
		op.Document, op.Message = answer.Hash(body), ""
		if !t.recorder.HasDocument(op.Document) {
			t.keep(op, body, parse)
		}
	}
}

// parsers parse the documents that are not aggregated discovery.
var parsers = map[string]func([]byte) (history.Document, error){history.VerbOpenAPI: answer.ParseOpenAPI, history.VerbLegacy: answer.ParseLegacy}

// keep records a new document, or, if it cannot be parsed, the reason.
func (t *recordingTransport) keep(op *history.Operation, body []byte, parse func([]byte) (history.Document, error)) {
	doc, err := parse(body)
	if err != nil {
		op.Message = err.Error()
		return
	}
	t.documents.Store(doc.Hash, doc)
	t.recorder.Document(doc)
}
