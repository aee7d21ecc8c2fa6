package suite

import (
	"bytes"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
)

func TestMoreRunsAtATimeThanThereIsRoomFor(t *testing.T) {
	const gb = 1 << 30
	for name, c := range map[string]struct {
		capacity  capacity
		parallel  int
		backend   string
		reference bool
		want      []string // nothing: no warning
	}{
		"one needs no choice":               {capacity{1, gb}, 1, scenario.BackendLocal, true, nil},
		"room enough":                       {capacity{4, 8 * gb}, 4, scenario.BackendLocal, false, nil},
		"too few processors":                {capacity{2, 64 * gb}, 3, scenario.BackendLocal, false, []string{"3 runs take 3 processors, and there are 2"}},
		"too few for two processes":         {capacity{2, 64 * gb}, 2, scenario.BackendLocal, true, []string{"2 runs take 3 processors, and there are 2"}},
		"just enough for two processes":     {capacity{3, 64 * gb}, 2, scenario.BackendLocal, true, nil},
		"too little memory":                 {capacity{8, 3 * gb}, 2, scenario.BackendKind, false, []string{"2 runs take 4 GB of memory, and 3.0 GB can be had"}},
		"memory that is not known":          {capacity{8, 0}, 4, scenario.BackendLocal, false, nil},
		"too little of both":                {capacity{1, gb}, 2, scenario.BackendLocal, false, []string{"processors", "; ", "memory"}},
		"the simulator has small processes": {capacity{2, gb}, 2, scenario.BackendSim, true, nil},
		"the simulator computes":            {capacity{2, gb}, 3, scenario.BackendSim, true, []string{"3 runs take 3 processors"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.capacity.lacks(c.parallel, c.backend, c.reference)
			if (got == "") != (c.want == nil) {
				t.Errorf("it lacks %q, want %q", got, c.want)
			}
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("it lacks %q, want %q in it", got, want)
				}
			}
		})
	}
}

// The warning comes only once, and only if something is lacking.
func TestTheWarningIsOneLine(t *testing.T) {
	plan, err := run.Spec{Scenario: "quiet", Backend: scenario.BackendSim}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	for parallel, lines := range map[int]int{1: 0, 1 << 20: 1} {
		var said bytes.Buffer
		o := Options{Out: t.TempDir(), Parallel: parallel, Console: run.Console{Out: &said, Progress: &said}}
		if err := o.Prepare(t.Context(), "quiet", []*run.Plan{plan}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(said.String(), "\n"); got != lines {
			t.Errorf("--parallel %d: %q, want %d lines", parallel, said.String(), lines)
		}
	}
}
