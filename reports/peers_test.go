package reports

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

func TestWhoWasAskedAndWhoAnswered(t *testing.T) {
	h := smallRun()
	h.Operations = nil
	ask := func(id, server string, status int, failure history.Failure, handled ...string) {
		o := history.Operation{ID: id, Start: at(12), End: at(12.1),
			Sent:     &history.Sent{Server: server, Verb: "list", GVR: trustBundles},
			Received: &history.Received{Status: status, Failure: failure}}
		h.Operations = append(h.Operations, o)
		for n, s := range handled {
			h.Hops = append(h.Hops, history.Hop{Operation: id, Start: o.Start + history.Time(n), End: o.End - history.Time(n),
				Entry: &history.Entry{Server: s, Rerouted: n > 0}})
		}
	}
	ask("1", "b", 200, "", "b", "a")
	ask("2", "b", 503, "", "b", "a")
	ask("3", "b", 404, "", "b")
	ask("4", "b", 0, history.FailureRefused)
	ask("5", "b", 0, history.FailureCanceled)        // says nothing
	ask("6", "a", 200, history.FailureCanceled, "a") // a watch that the run ended
	ask("7", "a", 200, history.FailureReset, "a")    // broke off
	v := invariant.Verdict{Name: "X", Grade: invariant.GradeCore, Wrong: []*history.Operation{&h.Operations[2]}}
	r := reportOf(h, []invariant.Verdict{v}, Options{})
	want := []Peer{
		{Asked: "a", By: "a", Requests: 2, Failed: 1},
		{Asked: "b", Requests: 1, Failed: 1}, {Asked: "b", By: "a", Requests: 2, Failed: 1}, {Asked: "b", By: "b", Requests: 1, Wrong: 1},
	}
	if diff := cmp.Diff(want, r.Peers); diff != "" {
		t.Errorf("peers (-want +got):\n%s", diff)
	}
	r.Peers = append(r.Peers, make([]Peer, mostPeers)...)
	if list := newPeerList(r); len(list.Pairs) != mostPeers || list.Omitted != 4 || list.Pairs[0].Failed+list.Pairs[0].Wrong == 0 {
		t.Errorf("the list is %+v", list)
	}
}

// Latency is measured by way, over time, and only of answers that say something about it.
func TestSpeedOverTime(t *testing.T) {
	h := bigRun()
	for n := range h.Operations {
		o := &h.Operations[n]
		h.Hops = append(h.Hops, history.Hop{Operation: o.ID, Start: o.Start, End: o.End, Entry: &history.Entry{Server: o.Server}})
		if o.Server == "b" && o.Start > at(70) {
			h.Hops = append(h.Hops, history.Hop{Operation: o.ID, Start: o.Start + 1, End: o.End - 1,
				Entry: &history.Entry{Server: "a", Rerouted: true}})
			o.End = o.Start + at(0.5)
		}
	}
	r := reportOf(h, nil, Options{})
	measured, passed := 0, 0
	for _, l := range r.Timeline.Lanes {
		for _, s := range l.Speeds {
			measured += s.Measured
			if s.P50Seconds > s.P99Seconds || len(s.Slowest) == 0 || s.Slowest[0].Seconds < s.P50Seconds {
				t.Errorf("%s: %+v", l.Server, s)
			}
			if s.Way == invariant.WayPassedOn {
				passed++
				if l.Server != "b" || s.StartSeconds < 69 || s.P50Seconds < 0.49 {
					t.Errorf("%s passed on: %+v", l.Server, s)
				}
			}
		}
	}
	whole := 0
	for _, l := range r.Latencies {
		whole += l.Measured
	}
	if measured != whole || passed < 15 {
		t.Errorf("%d requests were measured over time, want %d; %d slices passed on", measured, whole, passed)
	}
	c, ok := newSpeedChart(r)
	if !ok || len(c.Panels) != 3 || len(c.Panels[1].Lines) < 5 || len(c.Panels[2].Errors) == 0 {
		t.Errorf("the chart is %+v", c)
	}
	if _, ok := newSpeedChart(reportOf(smallRun(), nil, Options{}).withoutSpeeds()); ok {
		t.Error("there is a chart of nothing")
	}
}

func (r RunReport) withoutSpeeds() RunReport {
	for n := range r.Timeline.Lanes {
		r.Timeline.Lanes[n].Speeds = nil
	}
	return r
}
