package campaign

import (
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

// A real link cannot carry a fault that ends streams together with another one in the same stream.
func TestSchedulesThatRealLinksCannotCarry(t *testing.T) {
	bandwidth := fault.Fault{Kind: fault.Bandwidth, From: "client", To: "a", Rate: 100_000, Direction: fault.Up}
	latency := fault.Fault{Kind: fault.Latency, From: "client", To: "a", Latency: time.Second}
	timeout := fault.Fault{Kind: fault.Timeout, From: "client", To: "a"}
	down := timeout
	down.Direction = fault.Down
	elsewhere := timeout
	elsewhere.From = "b"
	cut := fault.Fault{Kind: fault.Cut, From: "client", To: "a"}
	inject := func(label string, f fault.Fault) scenario.Step {
		return scenario.Step{Action: scenario.Inject, Label: label, Fault: &f}
	}
	heal := func(label string) scenario.Step { return scenario.Step{Action: scenario.Heal, Label: label} }
	for name, c := range map[string]struct {
		steps []scenario.Step
		want  bool
	}{
		"two in one stream, of which one ends it":       {[]scenario.Step{inject("x", timeout), inject("y", bandwidth)}, false},
		"in the other order":                            {[]scenario.Step{inject("y", bandwidth), inject("x", timeout)}, false},
		"two that end it":                               {[]scenario.Step{inject("x", timeout), inject("y", down)}, false},
		"two that only delay":                           {[]scenario.Step{inject("x", latency), inject("y", bandwidth)}, true},
		"in different streams":                          {[]scenario.Step{inject("x", down), inject("y", bandwidth)}, true},
		"on different links":                            {[]scenario.Step{inject("x", elsewhere), inject("y", bandwidth)}, true},
		"one after the other":                           {[]scenario.Step{inject("x", timeout), heal("x"), inject("y", bandwidth)}, true},
		"the other one is healed":                       {[]scenario.Step{inject("x", timeout), inject("z", elsewhere), heal("z"), inject("y", bandwidth)}, false},
		"a cut, which takes the whole link down anyway": {[]scenario.Step{inject("x", timeout), inject("y", cut)}, true},
	} {
		if got := possible(planned(c.steps...)); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
