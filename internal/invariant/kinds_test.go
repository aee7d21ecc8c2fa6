package invariant

import (
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/fault"
)

// What is demanded while a fault is on depends on what its kind lets through. A kind that is taken
// for one that blocks has servers blamed for answers that they may well give; one that is taken for
// harmless, for what it broke.
func TestEveryKindOfFaultIsTakenForWhatItIs(t *testing.T) {
	want := map[fault.Kind]reach{
		fault.Cut: reachClosed, fault.Timeout: reachClosed, fault.Reset: reachClosed, fault.LimitData: reachPartial,
		fault.Latency: reachOpen, fault.Bandwidth: reachOpen, fault.Slicer: reachOpen, fault.SlowClose: reachOpen,
	}
	for _, kind := range fault.Kinds() {
		s := tell().fault(string(kind), "b", "a", 10, 30, fault.Fault{Kind: kind}.Blocks())
		got, _ := NewFacts(s.h).reach("b", "a", window{sec(20), sec(21)})
		if want, known := want[kind]; !known || got != want {
			t.Errorf("%s: reach %d, want %d", kind, got, want)
		}
	}
	for kind := range delaying {
		if !slices.Contains(fault.Kinds(), fault.Kind(kind)) {
			t.Errorf("there is no fault %q", kind)
		}
	}
}
