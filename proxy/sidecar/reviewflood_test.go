package sidecar

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// While a peer is down, each request for a resource that only the peer serves is authorized, and
// each name needs its own review. The local server's flow control does not limit the sidecar's
// reviews, so the sidecar must: one caller can use a quarter of them, and the rest remains for
// other callers.
func TestReviewsOfOneCallerAreBounded(t *testing.T) {
	p := newPair(t)
	p.atB.stop()
	if err := <-p.atB.ended; err != nil {
		t.Fatal(err)
	}
	alice := p.user("alice")
	if got := p.atA.get(alice, farAway); got.code != http.StatusServiceUnavailable || !strings.Contains(got.body, "novelties") {
		t.Fatalf("%d %s, want a 503 that names the resource", got.code, got.body)
	}
	const asked = 60
	held, release := holding(t, p.a, func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/subjectaccessreviews") })
	var waits []func()
	refused := func() int { return 0 }
	for i := range asked {
		before, name := refused, fmt.Sprint(farAway, "/", i)
		answered, wait := p.atA.askTogether(1, name)
		refused = func() int { return before() + answered(http.StatusServiceUnavailable) }
		waits = append(waits, wait)
	}
	await(t, "each request is reviewed or refused", func() bool { return int(held.Load())+refused() == asked })
	if n := held.Load(); n != 100/4 {
		t.Errorf("%d reviews of one caller at a time, want %d", n, 100/4)
	}
	before := held.Load()
	_, wait := p.atA.askTogether(1, farAway+"/bob", "Impersonate-User", "x") // refused before it is reviewed: the same caller
	wait()
	if n := held.Load(); n != before {
		t.Errorf("an impersonation by the same caller is reviewed (%d)", n-before)
	}
	bob := p.user("bob")
	answered := make(chan answer, 1)
	go func() { answered <- p.atA.get(bob, farAway) }()
	await(t, "another caller's request is reviewed", func() bool { return held.Load() == before+1 })
	release()
	if got := <-answered; got.code != http.StatusServiceUnavailable || !strings.Contains(got.body, "novelties") {
		t.Errorf("another caller: %d %s, want a 503 that names the resource", got.code, got.body)
	}
	for _, wait := range waits {
		wait()
	}
}
