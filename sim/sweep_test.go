package sim

import (
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy"
)

// After a server is killed, other servers still list its resources until its lease has expired. No
// server serves these resources, but clients that use discovery request them.
func TestASweepAsksForWhatIsOnlyListed(t *testing.T) {
	for _, c := range []struct {
		policy proxy.Policy
		lists  bool
	}{{proxy.Reference(), true}, {proxy.Upstream137(), true}, {proxy.Upstream134(), false}} {
		t.Run(c.policy.Name, func(t *testing.T) {
			r := run(t, only(t, c.policy), three(soak(10*time.Second),
				scenario.Step{Action: scenario.Kill, Server: "a"}, scenario.Step{Action: scenario.Sweep}, soak(time.Second)), 1)
			asked := map[string]bool{}
			for _, op := range r.History.Operations {
				if op.Purpose == history.PurposeSweep && op.GVR == onlyNew {
					asked[op.Server] = true
				}
			}
			if asked["b"] != c.lists || asked["c"] != c.lists {
				t.Errorf("asked %v for what only the killed server served; others list it: %v", asked, c.lists)
			}
		})
	}
}
