package reports

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

// courses writes the events of a picture, one line each.
func courses(s sequence) []string {
	var out []string
	for _, e := range s.Events {
		out = append(out, fmt.Sprintf("%s→%s %s %s", s.Lanes[e.From].Name, s.Lanes[e.To].Name, e.Kind, e.Label))
	}
	return out
}

func TestSequences(t *testing.T) {
	ask := Request{ID: "op-1", Server: "b", Verb: "get", Path: "/apis/g/v1/x?dryRun=All&limit=5", StartSeconds: 20, DurationSeconds: 0.02,
		Status: 404, Reason: "NotFound"}
	received := Hop{Request: "op-1", Server: "b", StartSeconds: 20.001, DurationSeconds: 0.018, Status: 404}
	passed := func(to string, at, took Seconds, status int) Hop {
		return Hop{Request: "op-1", Server: to, StartSeconds: at, DurationSeconds: took, Status: status, Rerouted: true}
	}
	with := func(change func(*Evidence)) Evidence {
		e := Evidence{Asked: "b", Requests: []Request{ask}, Hops: []Hop{received}}
		change(&e)
		return e
	}
	for _, c := range []struct {
		name     string
		evidence Evidence
		want     []string
	}{
		{
			"a fault is in the way",
			with(func(e *Evidence) { e.Candidates = []Candidate{{Server: "a", Obstacle: "fault 1, cut b→a"}} }),
			[]string{"client→b ask get /apis/g/v1/x?dryRun", "b→a blocked fault 1, cut b→a", "b→client wrong 404 NotFound"},
		},
		{
			"nobody was asked, though one could be reached",
			with(func(e *Evidence) { e.Candidates = []Candidate{{Server: "a", Reachable: true}} }),
			[]string{"client→b ask get /apis/g/v1/x?dryRun", "b→a unused could be reached, was not asked", "b→client wrong 404 NotFound"},
		},
		{
			"no server has recorded the request: nobody knows who was asked",
			with(func(e *Evidence) { e.Candidates, e.Hops = []Candidate{{Server: "a", Reachable: true}}, nil }),
			[]string{"client→b ask get /apis/g/v1/x?dryRun", "b→client wrong 404 NotFound"},
		},
		{
			"one hop",
			with(func(e *Evidence) { e.Hops = append(e.Hops, passed("a", 20.002, 0.01, 403)) }),
			[]string{"client→b ask get /apis/g/v1/x?dryRun", "b→a ask passed on", "a→b answer 403", "b→client wrong 404 NotFound"},
		},
		{
			"a chain: the inner hop ends before the outer one",
			with(func(e *Evidence) {
				e.Hops = append(e.Hops, passed("a", 20.002, 0.01, 404), passed("c", 20.003, 0.008, 404))
			}),
			[]string{
				"client→b ask get /apis/g/v1/x?dryRun", "b→a ask passed on", "a→c ask passed on", "c→a answer 404", "a→b answer 404",
				"b→client wrong 404 NotFound",
			},
		},
		{
			"failover: the second hop begins after the first",
			with(func(e *Evidence) {
				e.Hops = append(e.Hops, passed("a", 20.002, 0.001, 503), passed("c", 20.004, 0.008, 404))
			}),
			[]string{
				"client→b ask get /apis/g/v1/x?dryRun", "b→a ask passed on", "b→c ask passed on", "a→b answer 503", "c→b answer 404",
				"b→client wrong 404 NotFound",
			},
		},
		{
			"two answers that contradict each other: only the first is wrong",
			with(func(e *Evidence) {
				e.Hops, e.Difference = nil, &invariant.Difference{OnlyRightTotal: 8}
				e.Requests = append(e.Requests, Request{ID: "op-2", Server: "a", Verb: "discovery", Path: "/apis", StartSeconds: 19, Status: 200})
				e.Requests[0].Status, e.Requests[0].Reason = 200, ""
			}),
			[]string{
				"client→a ask discovery /apis", "a→client answer 200", "client→b ask get /apis/g/v1/x?dryRun", "b→client wrong 200, lacks 8",
			},
		},
		{
			"a controller is misled, and deletes",
			with(func(e *Evidence) {
				e.Requests[0].User = "system:serviceaccount:kube-system:generic-garbage-collector"
				e.Requests = append(e.Requests, Request{ID: "op-2", Server: "b", Verb: "delete", Path: "/api/v1/pods/p", StartSeconds: 21,
					DurationSeconds: 0.1, Status: 200})
				e.Objects = []Object{{Kind: "Owner", Name: "o", AtSeconds: 5}, {Kind: "Pod", Name: "p", AtSeconds: 21.05, Gone: true}}
			}),
			[]string{
				"etcd→etcd state Owner o: exists", "generic-garbage-collector→b ask get /apis/g/v1/x?dryRun",
				"b→generic-garbage-collector wrong 404 NotFound",
				"generic-garbage-collector→b wrong delete /api/v1/pods/p", "b→etcd wrong Pod p: removed", "b→generic-garbage-collector answer 200",
			},
		},
		{
			"no answer",
			with(func(e *Evidence) {
				e.Requests[0].Status, e.Requests[0].Reason, e.Requests[0].Failure = 0, "", history.FailureTimeout
			}),
			[]string{"client→b ask get /apis/g/v1/x?dryRun", "b→client wrong no answer (timeout)"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, ok := newSequence(RunReport{}, c.evidence)
			if got := courses(s); !ok || !slices.Equal(got, c.want) {
				t.Errorf("the picture shows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
	if _, ok := newSequence(RunReport{}, Evidence{Process: &Process{Server: "a"}}); ok {
		t.Error("a violation without a request has a picture of requests")
	}
}

// Even a loop through many servers gives a picture of bounded size, with the answer at its end.
func TestSequenceIsBounded(t *testing.T) {
	e := Evidence{Requests: []Request{{ID: "op-1", Server: "s0", StartSeconds: 1, DurationSeconds: 9, Status: 508}}}
	for n := range 100 {
		e.Hops = append(e.Hops, Hop{Request: "op-1", Server: fmt.Sprintf("s%d", n%9), StartSeconds: 1 + Seconds(n)/100,
			DurationSeconds: 8 - Seconds(n)/50, Rerouted: n > 0})
	}
	s, _ := newSequence(RunReport{}, e)
	if len(s.Lanes) > mostSeqLanes || len(s.Events) != mostSeqEvents || s.Omitted == 0 || s.Events[mostSeqEvents-1].Label != "508" {
		t.Errorf("%d lanes, %d events, %d left out, the last %+v", len(s.Lanes), len(s.Events), s.Omitted, s.Events[len(s.Events)-1])
	}
}

// No letter leaves the picture, in either layout.
func TestSequenceFitsItsPicture(t *testing.T) {
	long := strings.Repeat("a very long name ", 20)
	e := Evidence{
		Asked: "b", Requests: []Request{{ID: "op-1", Server: "b", Verb: "get", Path: "/apis/" + strings.Repeat("long/", 60), StartSeconds: 12345,
			DurationSeconds: 1, Status: 404, Message: long}},
		Candidates: []Candidate{{Server: "a", Obstacle: long}, {Server: long}},
	}
	s, _ := newSequence(RunReport{}, e)
	for _, l := range []seqLayout{seqWide, seqNarrow} {
		v := s.draw(l, "1")
		inside := func(text seqText) {
			half := seqWidth(text.Text) / 2
			if from, to := text.X-half, text.X+half; text.Anchor == "middle" && (from < 0 || to > v.Width+1) || text.Y > v.Height {
				t.Errorf("%s: %q reaches from %v to %v, and the picture is %v wide", l.id, text.Text, from, to, v.Width)
			}
		}
		for _, a := range v.Arrows {
			for _, text := range a.Label {
				inside(text)
			}
		}
		for _, lane := range v.Lanes {
			for _, text := range lane.Lines {
				inside(text)
			}
		}
		if l.id == "narrow" && len(s.Lanes) == 4 && v.Width > 520 {
			t.Errorf("four lanes take %v pixels of a small screen", v.Width)
		}
	}
}

func TestWrapped(t *testing.T) {
	for _, c := range []struct {
		text  string
		chars int
		want  []string
	}{
		{"short", 10, []string{"short"}},
		{"two words here", 9, []string{"two words", "here"}},
		{"/apis/group/v1/things", 12, []string{"/apis/group/", "v1/things"}},
		{"one two three four five", 8, []string{"one two", "three f…"}},
		{"", 8, nil},
		{"ééééééééééééééééé", 6, []string{"éééééé", "ééééé…"}},
	} {
		if got := wrapped(c.text, float64(c.chars)*seqChar+.1, 2); !slices.Equal(got, c.want) {
			t.Errorf("wrapped(%q, %d) is %q, want %q", c.text, c.chars, got, c.want)
		}
	}
}
