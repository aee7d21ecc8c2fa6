package invariant

import (
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// If servers of two minor versions claim to serve the same, the claim is not credible, unless one
// of them emulates the version of the other.
func TestAServerThatEmulatesMayServeTheSame(t *testing.T) {
	const name = "DiscoveryComplete"
	as := func(emulated string) *story {
		s := tell(name).runs("a", "v1.37.1").runs("b", "v1.37.1").runs("c", "v1.36.3").served("a", 2, oldDoc)
		for i := range s.h.Lifecycle {
			if l := &s.h.Lifecycle[i]; l.Server != "c" {
				l.Emulates = emulated
			}
		}
		return s
	}
	apart := as("1.36").stop("b", 30).start("b", 40, newDoc)
	for i := range apart.h.Lifecycle {
		if l := &apart.h.Lifecycle[i]; l.Incarnation == 2 {
			l.Version = "v1.37.1"
		}
	}
	checkStories(t, name, []storyCase{
		{"b emulates the version of the others", as("1.36").discover(20, "b", "/apis", doc("same", oldDoc.Resources...)),
			want{outcome: OutcomePass, checked: 1}},
		{"b emulates it, and lists a resource that no server serves", as("1.36").discover(20, "b", "/apis", doc("rich", append(slices.Clone(oldDoc.Resources), line(ghosts))...)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "/apis lists what no server serves", sentence: "lists none/v1/ghosts"}},
		{"b emulates a version that no other server has", as("1.35").discover(20, "b", "/apis", doc("same", oldDoc.Resources...)),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "a (v1.37.1) and c (v1.36.3) say that they serve exactly the same"}},
		{"b no longer emulates, and serves something else", apart.discover(60, "b", "/apis", mergedDoc),
			want{outcome: OutcomePass, checked: 1}},
		{"b no longer emulates, and says that it serves the same", as("1.36").stop("b", 30).start("b", 40, oldDoc).runs("b", "v1.37.1").discover(60, "b", "/apis", doc("same", oldDoc.Resources...)),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "b (v1.37.1) and c (v1.36.3) say that they serve exactly the same"}},
	})
}

// An emulated version belongs to one process. The next process does not inherit it.
func TestWhatIsEmulatedIsOfOneProcess(t *testing.T) {
	line := newTimeline([]history.Lifecycle{
		{Server: "a", Incarnation: 1, Version: "v1.37.1", Emulates: "1.36", State: history.StateStarting, At: 1},
		{Server: "a", Incarnation: 1, Version: "v1.37.1", Emulates: "1.36", State: history.StateReady, At: 2},
		{Server: "a", Incarnation: 2, Version: "v1.37.1", State: history.StateStarting, At: 3},
	})
	if before, after := line.at(2).emulates, line.at(3).emulates; before != "1.36" || after != "" {
		t.Errorf("it emulated %q, then %q", before, after)
	}
}
