package step_test

import (
	"context"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// settling is a load whose servers have converged between some times.
type settling struct {
	*fake
	right [][2]history.Time
}

func (s settling) Converged(context.Context) bool {
	for _, r := range s.right {
		if s.now >= r[0] && s.now < r[1] {
			return true
		}
	}
	return false
}

func TestConverge(t *testing.T) {
	const bound = 20 * time.Second
	for name, c := range map[string]struct {
		right [][2]history.Time
		ends  history.Time
	}{
		"at once": {[][2]history.Time{{0, time.Hour}}, 4 * time.Second}, // the restart takes one
		"later":   {[][2]history.Time{{7 * time.Second, time.Hour}}, 9500 * time.Millisecond},
		"right answers for a short time are not enough": {[][2]history.Time{{0, 3 * time.Second}, {10 * time.Second, time.Hour}}, 12500 * time.Millisecond},
		"never": {nil, 21 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			conf := config(f, f)
			conf.Load = settling{f, c.right}
			err := performWith(t, t.Context(), conf, []scenario.Server{{Name: "a"}}, at(scenario.Restart, "a"), scenario.Step{Action: scenario.Converge, For: bound})
			if err != nil {
				t.Fatal(err)
			}
			if f.now != c.ends {
				t.Errorf("it ended at %s, want %s", f.now, c.ends)
			}
			if last := f.steps[len(f.steps)-1]; last.Disturbs || last.Error != "" {
				t.Errorf("recorded %+v", last)
			}
		})
	}
}

// If the load is not a Converger, the executor waits for the whole limit.
func TestConvergeIsOutlastWhereTheLoadCannotTell(t *testing.T) {
	f := &fake{}
	err := performWith(t, t.Context(), config(f, f), []scenario.Server{{Name: "a"}}, at(scenario.Restart, "a"), scenario.Step{Action: scenario.Converge, For: 20 * time.Second})
	if err != nil || f.now != 21*time.Second {
		t.Errorf("it ended at %s, %v", f.now, err)
	}
}
