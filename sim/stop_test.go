package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim/recorded"
	"github.com/skewproof/skewproof/sim/tape"
)

// A run that is stopped in the middle has the history until then. No invariant passes on it.
func TestAStoppedRunKeepsItsHistory(t *testing.T) {
	stop := false
	setup := only(t, proxy.Reference())
	version := setup.Version
	setup.Version = func(name string) (*recorded.Version, error) {
		if name == "v1.35.4" {
			stop = true // the second step has begun
		}
		return version(name)
	}
	c := three(soak(10*time.Second), scenario.Step{Action: scenario.Replace, Server: "b", Version: "v1.35.4"}, soak(time.Hour))
	c.Load = &Load{QPS: 100}
	s := New(setup)
	defer s.Close()
	result, err := s.Run(c, tape.Seeded(1), Options{StopAtError: true, Stop: func() bool { return stop }})
	if err != nil {
		t.Fatal(err)
	}
	h := result.History
	if !result.Stopped || len(h.Steps) == 0 || len(h.Steps) == 3 || len(h.Operations) < 500 || result.Until > 10*time.Minute {
		t.Errorf("stopped %v after %s, %d steps and %d operations", result.Stopped, result.Until, len(h.Steps), len(h.Operations))
	}
	if want := "the run was stopped: step "; !strings.HasPrefix(h.End.Error, want) {
		t.Errorf("the end says %q, want %q…", h.End.Error, want)
	}
	for _, v := range invariant.Judge(h) {
		if v.Outcome == invariant.OutcomePass {
			t.Errorf("%s passes", v.Name)
		}
	}
}
