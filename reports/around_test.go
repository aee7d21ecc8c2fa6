package reports

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

// Of the requests around a violation, those about the same resource and to the same server come
// first, with those who handled them.
func TestRequestsAroundAViolation(t *testing.T) {
	h := bigRun()
	shown := slices.IndexFunc(h.Operations, func(o history.Operation) bool {
		return o.Server == "b" && o.GVR == trustBundles && o.Status == 404 && o.Start > at(31)
	})
	op := h.Operations[shown]
	h.Hops = []history.Hop{{Operation: op.ID, Start: op.Start, End: op.End,
		Entry: &history.Entry{Server: "b"}}, {Operation: op.ID, Start: op.Start + 1, End: op.End - 1,
		Entry: &history.Entry{Server: "a", Rerouted: true}}}
	v := invariant.Verdict{
		Name: "X", Grade: invariant.GradeCore, Outcome: invariant.OutcomeFail, Violations: 1, Wrong: []*history.Operation{&h.Operations[shown]},
		Evidence: []invariant.Evidence{{Sentence: "It is wrong.", Count: 1, Operations: []history.Operation{op}, Asked: "b"}},
	}
	e := reportOf(h, []invariant.Verdict{v}, Options{}).Invariants[0].Evidence[0]
	if len(e.Around) != mostAround || e.AroundTotal < 700 {
		t.Fatalf("%d requests of %d, want %d of all within two seconds", len(e.Around), e.AroundTotal, mostAround)
	}
	wrong := 0
	for n, q := range e.Around {
		if q.StartSeconds < e.Requests[0].StartSeconds-2.1 || q.StartSeconds > e.Requests[0].StartSeconds+2.1 {
			t.Errorf("a request at %v s is not within two seconds of %v s", q.StartSeconds, e.Requests[0].StartSeconds)
		}
		if n > 0 && q.StartSeconds < e.Around[n-1].StartSeconds {
			t.Error("they are not in time order")
		}
		if !strings.Contains(q.Path, "clustertrustbundles") {
			t.Errorf("there is %s, although there are enough requests for the same resource", q.Path)
		}
		if q.Wrong {
			wrong++
			if q.ID != op.ID || q.Way() != "b → a" || q.Answer() != "404" {
				t.Errorf("wrong is %s, by %s, answered %s", q.ID, q.Way(), q.Answer())
			}
		}
	}
	if wrong != 1 {
		t.Errorf("%d requests are marked as wrong, want the one that was judged wrong", wrong)
	}
}

// Only an invariant that counts makes an answer wrong.
func TestExtendedInvariantsMakeNothingRed(t *testing.T) {
	h := smallRun()
	v := []invariant.Verdict{{Name: "E", Grade: invariant.GradeExtended, Wrong: []*history.Operation{&h.Operations[0]}}}
	for strict, want := range map[bool]int{false: 0, true: 1} {
		if got := len(judgedWrong(v, strict)); got != want {
			t.Errorf("strict %t: %d answers are wrong, want %d", strict, got, want)
		}
	}
}

func ExampleNearby_Way() {
	fmt.Println(Nearby{Handled: []string{"b", "a"}}.Way())
	// Output: b → a
}
