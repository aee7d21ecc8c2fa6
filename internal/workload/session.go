package workload

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// Session is what one user remembers of the answers of one server: the merged documents that it
// received at /apis, by their ETags. A [Chooser] does not use answers, so that its choices do not
// depend on their speed. When a request is sent, the session fills in the fields that depend on
// earlier answers. The zero value remembers nothing. It is not safe for concurrent use.
type Session struct {
	last   string
	tags   []string          // in the order in which they were first received
	hashes map[string]string // of documents, by ETag
}

// Resolve returns the request with the fields that depend on earlier answers.
func (s *Session) Resolve(r Request) Request {
	switch {
	case r.Cached == CachedLast:
		r.IfNoneMatch = s.last
	case r.Cached == CachedAny && len(s.tags) > 0:
		r.IfNoneMatch = s.tags[r.Pick%len(s.tags)]
	}
	return r
}

// Documents returns a document by its hash, if it is known.
type Documents func(hash string) (history.Document, bool)

// notAsked is the message for an unexpected 304: by RFC 9110, section 15.4.5, a 304 answers only a
// conditional request.
const notAsked = "not modified, though the client has not said what it has"

// Answered processes the answer to a resolved request, or its failure, and completes its operation:
// with the document that a 304 confirms, and with the length of a list over all pages so far. It
// returns the request that the client sends next because of the answer, if any.
func (s *Session) Answered(r *Request, op *history.Operation, body []byte, document Documents) (next Request, more bool) {
	if op.Verb == history.VerbDiscovery && op.Failure == history.FailureNone {
		s.discovered(r, op)
	}
	switch r.Then {
	case ThenPages:
		return r.turnPage(op, body)
	case ThenPreferred:
		if doc, ok := document(s.hashes[s.last]); ok {
			return preferred(doc, r)
		}
	}
	return Request{}, false
}

// discovered remembers the ETag of a merged document. "Not modified" means that the client has the
// right document already: the document that came with the ETag in the condition.
func (s *Session) discovered(r *Request, op *history.Operation) {
	switch {
	case op.Status == http.StatusNotModified && r.IfNoneMatch == "":
		op.Message = notAsked
	case op.Status == http.StatusNotModified:
		if hash, ok := s.hashes[r.IfNoneMatch]; ok {
			op.Document = hash
			if op.ETag == "" {
				op.ETag = r.IfNoneMatch
			}
		}
	case op.Document != "" && op.ETag != "" && r.Path == "/apis":
		if s.hashes == nil {
			s.hashes = map[string]string{}
		}
		if _, known := s.hashes[op.ETag]; !known {
			s.tags = append(s.tags, op.ETag)
		}
		s.hashes[op.ETag], s.last = op.Document, op.ETag
	}
}

// turnPage stores the length of a list so far, and returns the request for its next page.
func (r *Request) turnPage(op *history.Operation, body []byte) (Request, bool) {
	var list struct {
		Metadata struct {
			Continue string `json:"continue"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if op.Verb != "list" || op.Status != http.StatusOK || op.Failure != history.FailureNone || json.Unmarshal(body, &list) != nil {
		return Request{}, false
	}
	op.Items, op.More = r.Before+len(list.Items), list.Metadata.Continue != ""
	next := *r
	query, err := url.ParseQuery(r.Query)
	if err != nil {
		return Request{}, false
	}
	query.Set("continue", list.Metadata.Continue)
	next.Query, next.Before = query.Encode(), op.Items
	return next, op.More
}

// preferred returns a list request for one of the resources of a document, in the first version
// that the document has.
func preferred(doc history.Document, r *Request) (Request, bool) {
	type groupResource struct{ group, resource string }
	seen := map[groupResource]bool{}
	var all []history.Resource
	for _, one := range doc.Resources {
		if of := (groupResource{one.Group, one.Resource}); !seen[of] {
			seen[of] = true
			if slices.Contains(one.Verbs, "list") {
				all = append(all, one)
			}
		}
	}
	if len(all) == 0 {
		return Request{}, false
	}
	return Request{Verb: "list", GVR: all[r.Pick%len(all)].GVR, Query: limit, Client: ClientREST, User: r.User}, true
}
