package history

import (
	"testing"
	"time"
)

// A run waits for a stopping server as long as the user's own flags let it serve, and let its
// requests and watches take.
func TestOwnFlagsProlongTheEndOfAServer(t *testing.T) {
	for _, c := range []struct {
		flags []string
		want  time.Duration
	}{
		{nil, 0},
		{[]string{"v=4", "goaway-chance=0.01"}, 0},
		{[]string{"shutdown-delay-duration=20s"}, 20 * time.Second},
		{[]string{"shutdown-delay-duration=20s", "shutdown-delay-duration=5s"}, 5 * time.Second}, // the last one counts
		{[]string{"shutdown-delay-duration=70s", "shutdown-watch-termination-grace-period=5s"}, 75 * time.Second},
		{[]string{"request-timeout=5m"}, 4 * time.Minute}, // every run waits for a minute
		{[]string{"request-timeout=30s"}, 0},
		{[]string{"shutdown-delay-duration=soon"}, 0}, // a server refuses it
	} {
		if got := (OwnFlags{Flags: c.flags}).Drain(); got != c.want {
			t.Errorf("%q: %s, want %s", c.flags, got, c.want)
		}
	}
}
