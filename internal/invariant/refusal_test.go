package invariant

import (
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// A server that was killed leaves its identity lease behind. If the next process refuses to start,
// it does not remove the lease, so peers still cannot know that the server is gone. If the next
// process was ready, it removes the lease when it stops.
func TestAProcessThatWasNeverReadyLeavesTheLeasesOfTheOneBefore(t *testing.T) {
	at := func(second int, incarnation int, state history.State) history.Lifecycle {
		return history.Lifecycle{Server: "a", Incarnation: incarnation, Version: "v1.37.1", State: state, At: time.Duration(second) * time.Second}
	}
	begin := []history.Lifecycle{at(0, 1, history.StateStarting), at(1, 1, history.StateReady)}
	for name, c := range map[string]struct {
		then []history.Lifecycle
		want history.State
	}{
		"killed, and then refused": {[]history.Lifecycle{
			at(2, 1, history.StateKilled), at(3, 2, history.StateStarting), at(4, 2, history.StateStopping), at(5, 2, history.StateStopped),
		}, history.StateKilled},
		"refused again": {[]history.Lifecycle{
			at(2, 1, history.StateKilled), at(3, 2, history.StateStarting), at(4, 2, history.StateStopped), at(5, 3, history.StateStarting), at(6, 3, history.StateStopped),
		}, history.StateKilled},
		"killed, ready again and stopped": {[]history.Lifecycle{
			at(2, 1, history.StateKilled), at(3, 2, history.StateStarting), at(4, 2, history.StateReady), at(5, 2, history.StateStopping), at(6, 2, history.StateStopped),
		}, history.StateStopped},
		"stopped, and then refused": {[]history.Lifecycle{
			at(2, 1, history.StateStopping), at(3, 1, history.StateStopped), at(4, 2, history.StateStarting), at(5, 2, history.StateStopped),
		}, history.StateStopped},
	} {
		t.Run(name, func(t *testing.T) {
			line := newTimeline(append(begin[:2:2], c.then...))
			if got := line.at(time.Minute); got.phase != phaseDown || got.left != c.want {
				t.Errorf("phase %v, left %s, want %s", got.phase, got.left, c.want)
			}
		})
	}
}
