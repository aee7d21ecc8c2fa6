package scenario

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLengthen(t *testing.T) {
	sweep, soak, end := Step{Action: Sweep}, Step{Action: Soak, For: time.Hour}, Step{Action: Outlast, For: time.Minute}
	for name, c := range map[string]struct {
		by           time.Duration
		before, want []Step
	}{
		"not at all":                {0, []Step{sweep, end}, []Step{sweep, end}},
		"before the end":            {time.Hour, []Step{sweep, end}, []Step{sweep, soak, end}},
		"without a wait at the end": {time.Hour, []Step{end, sweep}, []Step{end, sweep, soak}},
		"without any step":          {time.Hour, nil, []Step{soak}},
	} {
		plan := Plan{Steps: c.before}
		plan.Lengthen(c.by)
		if diff := cmp.Diff(c.want, plan.Steps); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
