package traffic

import (
	"net/http"
	"sync"

	"github.com/skewproof/skewproof/internal/history"
)

// documents are all that any client of a run was given, by their hashes.
type documents struct{ known sync.Map }

// noteEdition remembers the ETag of a merged document. "Not modified" says that the client has the right document already: the one that it was
// given with the ETag that it asked by.
func (t *recordingTransport) noteEdition(op *history.Operation, req *http.Request) {
	if op.Verb != history.VerbDiscovery {
		return
	}
	if op.Status == http.StatusNotModified {
		asked := req.Header.Get("If-None-Match")
		if asked == "" {
			op.Message = notAsked
		}
		if hash, ok := t.editions.Load(asked); ok {
			op.Document = hash.(string)
			if op.ETag == "" {
				op.ETag = asked
			}
		}
		return
	}
	if op.Document != "" && op.ETag != "" && req.URL.Path == "/apis" {
		etag := op.ETag
		if _, known := t.editions.Swap(etag, op.Document); !known {
			t.mu.Lock()
			t.tags = append(t.tags, etag)
			t.mu.Unlock()
		}
		t.etag.Store(&etag)
	}
}

// notAsked is why a 304 says nothing: RFC 9110, 15.4.5, makes it the answer to a condition.
const notAsked = "not modified, though the client has not said what it has"

// tag is one of the ETags that the client was ever given with a merged document: it may have slept since.
func (t *recordingTransport) tag(which int) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.tags) == 0 {
		return "", false
	}
	return t.tags[which%len(t.tags)], true
}

// documentOf is the document that the client was given with an ETag.
func (t *recordingTransport) documentOf(etag string) (history.Document, bool) {
	hash, ok := t.editions.Load(etag)
	if !ok {
		return history.Document{}, false
	}
	doc, ok := t.documents.known.Load(hash)
	if !ok {
		return history.Document{}, false
	}
	return doc.(history.Document), true
}
