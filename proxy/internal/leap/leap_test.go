package leap

import (
	"testing"
	"time"
)

func TestWall(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Second, time.Hour, -time.Second, -time.Hour, 24 * 365 * time.Hour} {
		now := time.Now()
		set := Wall(now, ahead)
		if set.Sub(now) != 0 || !set.Equal(now) || set.Add(time.Minute).Sub(now) != time.Minute {
			t.Errorf("%s ahead: by the monotonic clock, %s have passed", ahead, set.Sub(now))
		}
		if got := set.Round(0).Sub(now.Round(0)); got != ahead {
			t.Errorf("%s ahead: by the wall clock it is %s", ahead, got)
		}
	}
}
