package sidecar

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/proxy"
)

// Each decision about a request says where it is now. The counts of requests at peers, and the
// access record, follow every decision and every attempt, and the end of the request.
func TestWhereARequestIs(t *testing.T) {
	type step struct {
		decide  proxy.Action
		peer    proxy.ServerID
		attempt *proxy.AttemptResult // instead of a decision
		b, c    int                  // requests at these peers afterwards
	}
	to := func(peer proxy.ServerID, b, c int) step { return step{decide: proxy.Forward, peer: peer, b: b, c: c} }
	is := func(action proxy.Action, b, c int) step { return step{decide: action, b: b, c: c} }
	ends := func(a proxy.AttemptResult, b, c int) step { return step{attempt: &a, b: b, c: c} }
	failed := func(peer proxy.ServerID, o proxy.Outcome) proxy.AttemptResult {
		return proxy.AttemptResult{Peer: peer, Outcome: o}
	}
	for name, c := range map[string]struct {
		steps  []step
		record string
	}{
		"served here":      {[]step{is(proxy.ServeLocally, 0, 0)}, "local"},
		"nobody serves it": {[]step{is(proxy.NotFound, 0, 0)}, "not-found"},
		"unavailable":      {[]step{is(proxy.Unavailable, 0, 0)}, "unavailable"},
		"at a peer":        {[]step{to("b", 1, 0)}, "forward"},
		"answered":         {[]step{to("b", 1, 0), ends(proxy.AttemptResult{Peer: "b", Answered: true, Code: 500}, 1, 0)}, "forward b b:answered"},
		"at another peer": {[]step{to("b", 1, 0), ends(failed("b", proxy.NotDelivered), 1, 0), to("c", 0, 1),
			ends(proxy.AttemptResult{Peer: "c", Answered: true}, 0, 1)}, "forward c b:not-delivered c:answered"},
		"at the same peer again": {[]step{to("b", 1, 0), ends(failed("b", proxy.Refused), 1, 0), to("b", 1, 0)}, "forward b:refused"},
		"given up": {[]step{to("b", 1, 0), ends(failed("b", proxy.Undecided), 1, 0), is(proxy.Unavailable, 0, 0)},
			"unavailable b:undecided"},
		"served here after all": {[]step{to("c", 0, 1), ends(failed("c", proxy.Refused), 0, 1), is(proxy.ServeLocally, 0, 0)}, "local c:refused"},
		"our credentials": {[]step{to("b", 1, 0), ends(proxy.AttemptResult{Peer: "b", Outcome: proxy.Refused, Unauthorized: true}, 1, 0)},
			"forward b:unauthorized"},
	} {
		for _, others := range []int{0, 2} { // other requests at b
			o := newAccessObserver()
			for range others {
				o.Decided(context.Background(), proxy.Request{}, proxy.Decision{Action: proxy.Forward, Peer: "b"}, 0)
			}
			var log written
			a := &access{log: &accessLog{out: &log}, observer: o, next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				for i, s := range c.steps {
					if s.attempt != nil {
						o.Attempted(r.Context(), proxy.Request{}, *s.attempt)
					} else {
						o.Decided(r.Context(), proxy.Request{}, proxy.Decision{Action: s.decide, Peer: s.peer, Reason: proxy.ReasonCapable}, 0)
					}
					if b, c := o.inFlight("b"), o.inFlight("c"); b != s.b+others || c != s.c {
						t.Errorf("%s, after step %d: %d at b and %d at c, want %d and %d", name, i+1, b, c, s.b+others, s.c)
					}
				}
			})}
			a.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, common, nil))
			if b, c := o.inFlight("b"), o.inFlight("c"); b != others || c != 0 {
				t.Errorf("%s: after the end, %d at b and %d at c", name, b, c)
			}
			if others == 0 && len(o.at) != 0 {
				t.Errorf("%s: the counts of peers without requests are kept: %v", name, o.at)
			}
			var got AccessRecord
			if err := json.Unmarshal([]byte(log.String()), &got); err != nil {
				t.Fatal(err)
			}
			said := []string{got.Decision}
			if got.Peer != "" {
				said = append(said, got.Peer)
			}
			for _, attempt := range got.Attempts {
				said = append(said, fmt.Sprint(attempt.Peer, ":", attempt.Outcome))
			}
			if strings.Join(said, " ") != c.record {
				t.Errorf("%s: the record says %q, want %q", name, said, c.record)
			}
		}
	}
}

// A request whose handler panics to abort the connection is logged too, and is at no peer any more.
func TestAbortedRequestsEnd(t *testing.T) {
	o := newAccessObserver()
	var log written
	a := &access{log: &accessLog{out: &log}, observer: o, next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		o.Decided(r.Context(), proxy.Request{Rerouted: true}, proxy.Decision{Action: proxy.Forward, Peer: "b"}, 0)
		panic(http.ErrAbortHandler)
	})}
	func() {
		defer func() {
			if got := recover(); got != http.ErrAbortHandler {
				t.Errorf("panic %v", got)
			}
		}()
		a.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, common, nil))
	}()
	var got AccessRecord
	if err := json.Unmarshal([]byte(log.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Status != 0 || got.End.Before(got.Start) || got.End.IsZero() || !got.Rerouted || o.inFlight("b") != 0 {
		t.Errorf("%+v, %d at b", got, o.inFlight("b"))
	}
}
