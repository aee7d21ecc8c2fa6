package history

import (
	"fmt"
	"strings"
	"testing"
)

// Equal requests, answers and log entries of a history that was read are one. Others are not, and
// what a record lacks is not nil.
func TestAHistoryThatWasReadShares(t *testing.T) {
	const operation = `{"operation":{"id":"%d","purpose":"load","server":"a","verb":"%s","path":"/x","start":1,"end":2,"status":%d}}` + "\n"
	text := `{"run":{"schema":"` + SchemaVersion + `","servers":[{"name":"a"}]}}` + "\n" +
		fmt.Sprintf(operation, 1, "get", 200) + fmt.Sprintf(operation, 2, "get", 404) + fmt.Sprintf(operation, 3, "list", 404) +
		`{"operation":{"id":"4","server":"a","start":1,"end":2}}` + "\n" +
		`{"hop":{"operation":"1","server":"a","start":1,"end":2}}` + "\n" + `{"hop":{"operation":"2","server":"a","start":1,"end":2}}` + "\n" +
		`{"hop":{"operation":"2","server":"a","status":404,"start":1,"end":2}}` + "\n" + `{"hop":{"operation":"3","start":1,"end":2}}` + "\n"
	h, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	o := h.Operations
	if o[0].Sent != o[1].Sent || o[0].Received == o[1].Received || o[1].Received != o[2].Received || o[1].Sent == o[2].Sent {
		t.Error("equal parts of operations are not shared, or others are")
	}
	if o[3].Status != 0 || o[3].Verb != "" || o[3].Server != "a" {
		t.Errorf("an operation without an answer is %+v, %+v", o[3].Sent, o[3].Received)
	}
	if p := h.Hops; p[0].Entry != p[1].Entry || p[1].Entry == p[2].Entry || p[3].Server != "" {
		t.Error("equal entries are not shared, or others are")
	}
}

// A Sharing keeps nothing of what it is given, and is bounded.
func TestSharingKeepsCopies(t *testing.T) {
	var s Sharing
	o := NewOperation()
	o.Verb = "get"
	kept := s.Operation(o)
	o.Verb, o.Status = "list", 404
	if kept.Verb != "get" || kept.Status != 0 || kept.Sent == o.Sent {
		t.Errorf("what was kept has changed: %+v, %+v", kept.Sent, kept.Received)
	}
	for n := range mostShared + 1 {
		s.Hop(Hop{Entry: &Entry{Status: n}})
	}
	if len(s.entries) > mostShared {
		t.Errorf("%d entries are kept, want at most %d", len(s.entries), mostShared)
	}
}

// Requests of several callers alternate. Each caller's requests are shared all the same, and so are
// answers whose messages alternate.
func TestWhatAlternatesIsShared(t *testing.T) {
	var s Sharing
	operation := func(n int) Operation {
		o := NewOperation()
		o.Server, o.Client, o.Path, o.Status = "a", "dynamic", "/x", 403
		o.User, o.Verb, o.Message = fmt.Sprint("user ", n%3), []string{"get", "watch"}[n%2], fmt.Sprint("forbidden for user ", n%3)
		return s.Operation(o)
	}
	sent, received := map[*Sent]bool{}, map[*Received]bool{}
	for n := range 60 {
		o := operation(n)
		sent[o.Sent], received[o.Received] = true, true
	}
	if len(sent) != 6 || len(received) != 3 {
		t.Errorf("%d different requests and %d different answers are kept, want 6 and 3", len(sent), len(received))
	}
}
