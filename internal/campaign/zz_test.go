package campaign

import (
	"fmt"
	"testing"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim/search"
)

func TestZZ(t *testing.T) {
	c, err := newChooser(search.Spec{Policy: "builtin", Servers: 3, Resources: 6}, []string{"v1.36.3", "v1.37.1"}, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(40) {
		s, _ := c.of(seed + 1)
		_, takes := promised(s.plan)
		starts, dist := 0, 0
		for _, st := range s.plan.Steps {
			if st.Disturbs() {
				dist++
			}
			if st.Action == scenario.Start || st.Action == scenario.Restart || st.Action == scenario.Replace {
				starts++
			}
		}
		fmt.Printf("seed %d takes %s steps %d disturb %d starts %d traffic %q\n", s.seed, takes, len(s.plan.Steps), dist, starts, s.plan.Traffic)
	}
}
