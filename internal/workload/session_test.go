package workload

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

var things = history.Document{Hash: "things", Resources: []history.Resource{
	{GVR: history.GVR{Group: "g", Version: "v2", Resource: "things"}, Verbs: []string{"list"}},
	{GVR: history.GVR{Group: "g", Version: "v2", Resource: "reviews"}, Verbs: []string{"create"}},
	{GVR: history.GVR{Group: "g", Version: "v1", Resource: "things"}, Verbs: []string{"list"}},
	{GVR: history.GVR{Group: "g", Version: "v1", Resource: "others"}, Verbs: []string{"list"}},
}}

func library(hash string) (history.Document, bool) { return things, hash == things.Hash }

// given gives the session an answer to a request for the merged document.
func given(s *Session, r Request, status int, etag, document string) (history.Operation, Request, bool) {
	r = s.Resolve(r)
	op := history.Operation{Sent: &history.Sent{Verb: r.Verb}, Received: &history.Received{Status: status, ETag: etag, Document: document}}
	next, more := s.Answered(&r, &op, nil, library)
	return op, next, more
}

func TestADocumentIsAskedForOnConditionOfTheOneThatTheClientHas(t *testing.T) {
	var s Session
	merged := Request{Verb: history.VerbDiscovery, Path: "/apis"}
	last, sleeper := merged, merged
	last.Cached, sleeper.Cached, sleeper.Pick = CachedLast, CachedAny, 4
	if r := s.Resolve(last); r.IfNoneMatch != "" {
		t.Errorf("before any answer it says that it has %q", r.IfNoneMatch)
	}
	given(&s, merged, http.StatusOK, `"old"`, "first")
	given(&s, merged, http.StatusOK, `"new"`, things.Hash)
	given(&s, Request{Verb: history.VerbDiscovery, Path: "/api"}, http.StatusOK, `"core"`, "core")
	if r := s.Resolve(last); r.IfNoneMatch != `"new"` {
		t.Errorf("it says that it has %q, want the last of /apis", r.IfNoneMatch)
	}
	if op, _, _ := given(&s, sleeper, http.StatusNotModified, "", ""); op.Document != "first" || op.ETag != `"old"` {
		t.Errorf("a 304 to a client that has slept confirms %q with the ETag %s", op.Document, op.ETag)
	}
	if op, _, _ := given(&s, merged, http.StatusNotModified, "", ""); op.Document != "" || op.Message != notAsked {
		t.Errorf("a 304 without a condition confirms %q: %s", op.Document, op.Message)
	}
}

// kubectl uses the version that the merged document lists first.
func TestPreferredIsTheFirstVersion(t *testing.T) {
	var s Session
	seen := map[string]bool{}
	for pick := range 10 {
		kubectl := Request{Verb: history.VerbDiscovery, Path: "/apis", Cached: CachedLast, Then: ThenPreferred, Pick: pick, User: Reader}
		if pick == 0 {
			if _, _, more := given(&s, kubectl, http.StatusServiceUnavailable, "", ""); more {
				t.Error("it asks for more, and knows of nothing")
			}
		}
		_, next, more := given(&s, kubectl, http.StatusOK, `"E"`, things.Hash)
		if !more || next.Verb != "list" || next.User != Reader {
			t.Fatalf("then it asks to %s as %s", &next, next.User)
		}
		seen[next.GVR.String()] = true
	}
	if len(seen) != 2 || !seen["g/v2/things"] || !seen["g/v1/others"] {
		t.Errorf("it takes %v, want the first version of each that can be listed", seen)
	}
}

// Lists are compared by their length over all pages.
func TestAListIsCountedOverItsPages(t *testing.T) {
	list := func(items int, token string) []byte {
		all := strings.TrimSuffix(strings.Repeat(`{},`, items), ",")
		return fmt.Appendf(nil, `{"kind":"List","metadata":{"continue":%q},"items":[%s]}`, token, all)
	}
	r := Request{Verb: "list", GVR: things.Resources[0].GVR, Query: "labelSelector=x&limit=37", Then: ThenPages}
	var s Session
	for page, want := range []int{37, 74, 100} {
		op := history.Operation{Sent: &history.Sent{Verb: "list"}, Received: &history.Received{Status: http.StatusOK}}
		token := "a/b"
		if want == 100 {
			token = ""
		}
		next, more := s.Answered(&r, &op, list(min(37, want-37*page), token), library)
		if op.Items != want || more != (token != "") || op.More != more {
			t.Fatalf("page %d: %d objects so far, more: %t", page, op.Items, more)
		}
		if more && next.URL().RequestURI() != "/apis/g/v2/things?continue=a%2Fb&labelSelector=x&limit=37" {
			t.Fatalf("the next page is %s", next.URL())
		}
		r = next
	}
	for name, op := range map[string]history.Operation{
		"refused": {Sent: &history.Sent{Verb: "list"}, Received: &history.Received{Status: http.StatusServiceUnavailable}},
		"cut off": {Sent: &history.Sent{Verb: "list"}, Received: &history.Received{Status: http.StatusOK, Failure: history.FailureReset}},
	} {
		if _, more := s.Answered(&r, &op, list(1, "next"), library); more || op.Items != 0 {
			t.Errorf("a list that was %s has %d objects, and more: %t", name, op.Items, more)
		}
	}
}
