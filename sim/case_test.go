package sim

import (
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/scenario"
)

// A load without time between two requests would never end.
func TestALoadMustLeaveTime(t *testing.T) {
	for qps, good := range map[float64]bool{0: false, -1: false, 1e-12: false, 1e12: false, 0.001: true, 240: true, 100_000: true} {
		c := Case{Servers: []scenario.Server{{Name: "a", Version: "v1.37.1"}, {Name: "b", Version: "v1.36.3"}}, Load: &Load{QPS: qps}}
		if err := c.Validate(); (err == nil) != good || err != nil && !strings.Contains(err.Error(), "requests a second") {
			t.Errorf("%v requests a second: error %v, want one: %t", qps, err, !good)
		}
	}
}
