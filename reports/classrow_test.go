package reports

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

// forgetting is a run in which b answers a skewed request 503 while a is cut off, and 404 after the
// restart of c.
func forgetting(change func(n int, o *history.Operation)) *history.History {
	h := smallRun()
	h.Operations = nil
	for n := range 40 {
		o := history.Operation{ID: fmt.Sprintf("op-%d", n), Start: at(5.2 + float64(n)*0.2),
			Sent:     &history.Sent{Server: "b", Verb: "list", GVR: trustBundles},
			Received: &history.Received{Status: 503}}
		if n >= 20 {
			o.Status, o.Missing = 404, history.MissingResource
		}
		o.End = o.Start + 1
		change(n, &o)
		h.Operations = append(h.Operations, o)
	}
	return h
}

func TestAChangeFrom503To404IsTold(t *testing.T) {
	wrongIf404 := func(h *history.History) []invariant.Verdict {
		v := invariant.Verdict{Name: "X", Grade: invariant.GradeCore, Outcome: invariant.OutcomeFail}
		for n := range h.Operations {
			if h.Operations[n].Status == 404 {
				v.Wrong = append(v.Wrong, &h.Operations[n])
			}
		}
		return []invariant.Verdict{v}
	}
	for _, c := range []struct {
		name   string
		change func(int, *history.Operation)
		judge  bool
		want   []string
	}{
		{"503, then 404", func(int, *history.Operation) {}, true, []string{
			"b, whole resources: 503 from 5.2 s to 9.0 s (20 times), but from 9.2 s to 13.0 s 404, which is wrong (20 times). " +
				"The answer changed while b→a was cut and c was restarted, during “restart c”.",
		}},
		{"404 that no invariant judged wrong", func(int, *history.Operation) {}, false, nil},
		{"404 from the start on", func(_ int, o *history.Operation) { o.Status, o.Missing = 404, history.MissingResource }, true, nil},
		{"503 to the end", func(_ int, o *history.Operation) { o.Status, o.Missing = 503, "" }, true, nil},
		{"by turns", func(n int, o *history.Operation) {
			o.Status, o.Missing = 503, ""
			if n%2 == 0 {
				o.Status, o.Missing = 404, history.MissingResource
			}
		}, true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := forgetting(c.change)
			var verdicts []invariant.Verdict
			if c.judge {
				verdicts = wrongIf404(h)
			}
			got := reportOf(h, verdicts, Options{}).Turns()
			if !slices.Equal(got, c.want) {
				t.Errorf("it tells %q, want %q", got, c.want)
			}
		})
	}
}

// Only requests that an invariant judged wrong are red.
func TestOnlyWhatIsJudgedWrongIsRed(t *testing.T) {
	red := func(verdicts ...invariant.Verdict) int {
		n := 0
		for _, l := range newChart(reportOf(smallRun(), verdicts, Options{})).Lanes {
			for _, bars := range append([]rowView{{Cells: l.Bars}}, l.Rows...) {
				for _, b := range bars.Cells {
					n += len(slices.DeleteFunc(slices.Clone(b.Parts), func(r rect) bool { return r.Class != "wrong" }))
				}
			}
		}
		return n
	}
	if n := red(); n > 0 {
		t.Errorf("%d red parts, though nothing was judged wrong", n)
	}
	h := smallRun()
	v := invariant.Verdict{Name: "X", Grade: invariant.GradeCore, Wrong: []*history.Operation{&h.Operations[9]}}
	chart := newChart(reportOf(h, []invariant.Verdict{v}, Options{}))
	n := 0
	for _, l := range chart.Lanes {
		for _, r := range l.Rows {
			for _, c := range r.Cells {
				if slices.ContainsFunc(c.Parts, func(p rect) bool { return p.Class == "wrong" }) {
					n++
					if l.Server != "b" || r.Label != "whole resources" || !strings.Contains(c.Title, "1 × judged wrong") {
						t.Errorf("red is %q of %s, %s", c.Title, l.Server, r.Label)
					}
				}
			}
		}
	}
	if n != 1 {
		t.Errorf("%d cells are red, want the one with the wrong answer", n)
	}
}

func TestRowClasses(t *testing.T) {
	for _, c := range []struct {
		op        history.Operation
		mechanism invariant.Mechanism
		want      string
	}{
		{history.Operation{Sent: &history.Sent{GVR: configMaps}, Received: &history.Received{}}, invariant.MechanismResource, "whole resources"},
		{history.Operation{Sent: &history.Sent{GVR: configMaps, Subresource: "status"}, Received: &history.Received{}},
			invariant.MechanismResource, "whole resources"},
		{history.Operation{Sent: &history.Sent{GVR: configMaps, Verb: "watch"}, Received: &history.Received{}}, invariant.MechanismWatch,
			"whole resources"},
		{history.Operation{Sent: &history.Sent{GVR: configMaps, Subresource: "status"}, Received: &history.Received{}},
			invariant.MechanismSubresource, "subresources"},
		{history.Operation{Sent: &history.Sent{GVR: configMaps, Subresource: "exec", Client: history.ClientSPDY}, Received: &history.Received{}},
			invariant.MechanismSubresource, "upgrades"},
		{history.Operation{Sent: &history.Sent{Path: "/apis", Verb: history.VerbDiscovery}, Received: &history.Received{}},
			invariant.MechanismDiscovery, "discovery"},
		{history.Operation{Sent: &history.Sent{GVR: history.GVR{Group: "apps", Version: "v1"}}, Received: &history.Received{}},
			invariant.MechanismGroupDocument, "discovery"},
	} {
		if got := rowClass(&c.op, c.mechanism); got != c.want {
			t.Errorf("%+v is in the row %q, want %q", c.op, got, c.want)
		}
	}
}

// Buckets that look the same become one cell, and the cell counts all of them.
func TestSteadyRowsAreSmall(t *testing.T) {
	var r ClassRow
	for n := range 100 {
		b := Bucket{StartSeconds: Seconds(n), Success: 10}
		if n >= 60 {
			b.Wrong = 1
		}
		if n != 30 { // a gap
			r.Buckets = append(r.Buckets, b)
		}
	}
	v := newRow("b", r, newScale(100), 1, 0)
	if len(v.Cells) != 3 || !strings.HasSuffix(v.Cells[2].Title, "1m00s to 1m40s: 40 × judged wrong, 400 × 2xx or 304") {
		t.Errorf("%d cells: %+v", len(v.Cells), v.Cells)
	}
}

// With many steps, each is an event and not a row.
func TestManyStepsAreEvents(t *testing.T) {
	var steps []Step
	for n := range 2000 {
		steps = append(steps, Step{Index: n, Sentence: "restart b", StartSeconds: Seconds(n), EndSeconds: Seconds(n + 1)})
	}
	spans, bottom := spansOf(steps, Step.event, "step", newScale(2000), 10)
	if bottom != 10+rowHeight || len(spans) > 500 || spans[0].Label != "" || !strings.Contains(spans[0].Title, "events from 0.0 s on") {
		t.Errorf("%d spans down to %v, the first %+v", len(spans), bottom, spans[0])
	}
	if spans, _ := spansOf(steps[:3], Step.event, "step", newScale(2000), 10); len(spans) != 3 || spans[2].Label == "" {
		t.Errorf("three steps give %+v", spans)
	}
}

// Every mark leads to the card of its violation, and one defect has one mark on a lane.
func TestMarksLeadToTheirCards(t *testing.T) {
	r := small()
	same := r.Invariants[0]
	same.Name = "Again"
	r.Invariants = append(r.Invariants, same)
	links := map[string]int{}
	for _, l := range newChart(r).Lanes {
		for _, m := range l.Marks {
			links[l.Server+m.Href]++
			if !strings.HasPrefix(m.Href, "#violation-") {
				t.Errorf("a mark leads to %q: %s", m.Href, m.Title)
			}
		}
	}
	for link, n := range links {
		if n != 1 {
			t.Errorf("%d marks lead to %s", n, link)
		}
	}
	if len(links) < 3 {
		t.Errorf("only %d marks", len(links))
	}
}
