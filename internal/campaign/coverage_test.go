package campaign

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim/search"
)

func planned(steps ...scenario.Step) scenario.Plan {
	return scenario.Plan{Servers: []scenario.Server{{Name: "a", Version: "v1.37.1"}, {Name: "b", Version: "v1.36.3"}}, Steps: steps}
}

func TestTransitions(t *testing.T) {
	p := planned(
		scenario.Step{Action: scenario.Soak, For: time.Second}, scenario.Step{Action: scenario.Replace, Server: "a", Version: "v1.36.3"},
		scenario.Step{Action: scenario.Replace, Server: "a", Version: "v1.36.3"}, scenario.Step{Action: scenario.Kill, Server: "a"},
		scenario.Step{Action: scenario.Start, Server: "a"}, scenario.Step{Action: scenario.Stop, Server: "a"}, scenario.Step{Action: scenario.Start, Server: "a", Version: "v1.37.1"},
		scenario.Step{Action: scenario.Restart, Server: "b"},
	)
	if got, want := transitionsOf(p), []string{"", "downgrade", "restart", "", "start", "stop", "upgrade", "restart"}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestWhatAPlanPromises(t *testing.T) {
	soak := func(d time.Duration) scenario.Step { return scenario.Step{Action: scenario.Soak, For: d} }
	p := planned(
		soak(time.Second), scenario.Step{Action: scenario.Inject, Label: "x", Fault: &fault.Fault{Kind: fault.Cut, From: "a", To: "b"}}, soak(time.Second),
		scenario.Step{Action: scenario.Restart, Server: "b"}, soak(time.Minute), scenario.Step{Action: scenario.Pause, Server: "b"}, soak(time.Second),
		scenario.Step{Action: scenario.Heal, Label: "x"}, scenario.Step{Action: scenario.Resume, Server: "b"}, scenario.Step{Action: scenario.Converge, For: time.Second},
	)
	want := []situation{{"none", "none"}, {"cut", "none"}, {"cut", "restart"}, {"pause", "none"}, {"none", "resume"}}
	got, takes := promised(p)
	if want := time.Second + time.Second + 5*time.Second + time.Minute + time.Second + 5*time.Second; takes != want {
		t.Errorf("it takes %s, want %s", takes, want)
	}
	for _, s := range want {
		if !got[s] {
			t.Errorf("%v is not promised", s)
		}
	}
	if len(got) != len(want) {
		t.Errorf("promised: %v, want %v", got, want)
	}
	classes := len(invariant.CrossingClasses())
	c := Coverage{}
	seconds := takes.Seconds() + 15
	if n := c.Promise(p) * seconds; math.Abs(n-float64(len(want)*classes)) > 0.001 {
		t.Errorf("%v cells are promised, want %d", n, len(want)*classes)
	}
	c[cell{want[0], invariant.CrossingClasses()[0]}] = 1
	if n := c.Promise(p) * seconds; math.Abs(n-float64(len(want)*classes-1)) > 0.001 {
		t.Errorf("%v cells are promised when one is reached, want %d", n, len(want)*classes-1)
	}
}

// The same coverage and seeds choose the same schedule, and the seed alone gives it again.
func TestTheChoiceIsDeterministic(t *testing.T) {
	versions := []string{"v1.35.4", "v1.36.3", "v1.37.1"}
	spec := search.Spec{Policy: scenario.SubjectBuiltin, From: versions[0], To: versions[2], Versions: versions, Servers: 3, Resources: 6}
	var seeds [2][]uint64
	for i := range seeds {
		c, err := newChooser(spec, 1, 8, false)
		if err != nil {
			t.Fatal(err)
		}
		reached := Coverage{}
		for range 10 {
			s, err := c.choose(reached)
			if err != nil {
				t.Fatal(err)
			}
			alone, err := newChooser(spec, s.seed, 1, false)
			if err != nil {
				t.Fatal(err)
			}
			again, err := alone.choose(Coverage{})
			if err != nil || again.seed != s.seed || len(again.plan.Steps) != len(s.plan.Steps) {
				t.Fatalf("seed %d alone gives another schedule: %v", s.seed, err)
			}
			situations, _ := promised(s.plan)
			for at := range situations {
				for _, class := range invariant.CrossingClasses() {
					reached[cell{at, class}]++
				}
			}
			seeds[i] = append(seeds[i], s.seed)
		}
	}
	if !slices.Equal(seeds[0], seeds[1]) {
		t.Errorf("chosen: %v, and then %v", seeds[0], seeds[1])
	}
	if slices.Equal(seeds[0], []uint64{1, 9, 17, 25, 33, 41, 49, 57, 65, 73}) {
		t.Error("the first of all candidates was always chosen: the reached situations do not matter")
	}
}

// If schedules are chosen by their new situations, the campaign reaches these in less time.
func TestTheChoicePrefersWhatWasNotReached(t *testing.T) {
	spec := search.Spec{Policy: scenario.SubjectBuiltin, From: "v1.36.3", To: "v1.37.1", Servers: 3, Resources: 6}
	reachedBy := func(candidates uint64) float64 {
		c, err := newChooser(spec, 1, candidates, false)
		if err != nil {
			t.Fatal(err)
		}
		reached, took := Coverage{}, time.Duration(0)
		for range 10 {
			s, err := c.choose(reached)
			if err != nil {
				t.Fatal(err)
			}
			situations, takes := promised(s.plan)
			took += takes + 15*time.Second
			for at := range situations {
				reached[cell{at, invariant.CrossingClasses()[0]}]++
			}
		}
		return float64(len(reached)) / took.Minutes()
	}
	if one, eight := reachedBy(1), reachedBy(8); eight <= one {
		t.Errorf("%.2f situations a minute are reached without a choice, and %.2f with one", one, eight)
	}
}
