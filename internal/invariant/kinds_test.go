package invariant

import (
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/fault"
)

// The demands during a fault depend on what the kind of fault lets through. If a kind wrongly
// counted as blocking, servers would be blamed for answers that they may give. If a kind wrongly
// counted as harmless, servers would be blamed for the effect of the fault.
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
