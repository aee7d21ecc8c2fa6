package proxy

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/proxy/internal/leap"
)

// The clock of a node may be set forward or back by an hour. Peers are then still avoided,
// extensions excluded and knowledge forgotten for as long as before.
func TestClockThatLeaps(t *testing.T) {
	const histories, steps = 300, 60
	seen := map[string]int{}
	for seed := range uint64(histories) {
		random := rand.New(rand.NewPCG(seed, 0))
		for _, policy := range Presets() {
			now, ahead := time.Now(), time.Duration(0)
			steady, leaping := NewTable(policy, "self"), NewTable(policy, "self")
			for step := range steps {
				now = now.Add([]time.Duration{time.Millisecond, time.Second, 5 * time.Second, time.Minute, 6 * time.Minute}[random.IntN(5)])
				if random.IntN(4) == 0 {
					ahead += []time.Duration{-time.Hour, time.Hour}[random.IntN(2)]
				}
				kind, detail := byte(random.IntN(256)), byte(random.IntN(256))
				there := leap.Wall(now, ahead)
				steady, leaping = steady.Observe(eventFor(kind, detail, now)), leaping.Observe(eventFor(kind, detail, there))
				want, got := seenBy(steady, now), seenBy(leaping, there)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s, seed %d, step %d, the clock is %s ahead (-steady +leaping):\n%s", policy.Name, seed, step, ahead, diff)
				}
				for _, line := range want {
					seen[line]++
				}
			}
		}
	}
	for _, line := range []string{"a is avoided", "it wakes up"} {
		if seen[line] == 0 {
			t.Errorf("in no history %s: this proves nothing about it", line)
		}
	}
}

// seenBy describes the state of a table at a time. The description has no wall-clock time.
func seenBy(t *Table, now time.Time) (lines []string) {
	for _, r := range []Request{request(gadget), request(status), request(pods), {Kind: KindDiscovery, Resource: Resource{Group: gadget.Group}}} {
		lines = append(lines, fmt.Sprintf("%+v", t.Decide(r, nil, now, first)))
	}
	for _, p := range t.Peers() {
		if p.EjectedUntil.After(now) {
			lines = append(lines, fmt.Sprintf("%s is avoided", p.ID), p.EjectedUntil.Sub(now).String())
		}
		for root := range p.Learned {
			if !p.Learned[root].IsZero() {
				lines = append(lines, fmt.Sprintf("%s %d %s", p.ID, root, now.Sub(p.Learned[root])))
			}
		}
	}
	if at, ok := t.Wake(); ok {
		lines = append(lines, "it wakes up", at.Sub(now).String())
	}
	return lines
}
