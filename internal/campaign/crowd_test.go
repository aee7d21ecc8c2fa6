package campaign

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

// About every fourth schedule has one crowd, at any server, which lasts as long as one
// of its waits. A seed always gives the same.
func TestSomeSchedulesHaveACrowd(t *testing.T) {
	plan := func() *scenario.Plan {
		p := &scenario.Plan{Servers: []scenario.Server{{Name: "a", Version: "v1.37.1"}, {Name: "b", Version: "v1.36.3"}}}
		p.Soak(time.Second)
		p.Restart("a")
		p.Soak(2 * time.Second)
		return p
	}
	seen := map[scenario.Step]int{}
	places := map[int]int{}
	const seeds = 1000
	crowds := 0
	for seed := range uint64(seeds) {
		p, again := plan(), plan()
		crowd(p, seed)
		crowd(again, seed)
		if !reflect.DeepEqual(p, again) {
			t.Fatalf("seed %d gives two schedules", seed)
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		i := slices.IndexFunc(p.Steps, func(s scenario.Step) bool { return s.Action == scenario.StartCrowd })
		if i < 0 {
			if !reflect.DeepEqual(p, plan()) {
				t.Fatalf("seed %d changes a schedule and adds no crowd", seed)
			}
			continue
		}
		crowds++
		seen[p.Steps[i]]++
		places[i]++
		if p.Steps[i+1].Action != scenario.Soak || p.Steps[i+2].Action != scenario.EndCrowd || p.Steps[i+2].Server != p.Steps[i].Server || len(p.Steps) != 5 {
			t.Fatalf("seed %d: %v", seed, p.Steps)
		}
	}
	if crowds < seeds/5 || crowds > seeds/3 {
		t.Errorf("%d of %d schedules have a crowd", crowds, seeds)
	}
	if want := 2; len(seen) != want || len(places) != 2 {
		t.Errorf("%d different crowds at %d places, want %d at 2", len(seen), len(places), want)
	}
	empty := &scenario.Plan{Servers: plan().Servers}
	for seed := range uint64(20) {
		if crowd(empty, seed); len(empty.Steps) > 0 {
			t.Error("a schedule without a wait has a crowd")
		}
	}
}
