package peers

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/internal/leap"
)

// If the clock of this server is changed, peers are asked at the same intervals as before.
func TestRoundsOfAClockThatLeaps(t *testing.T) {
	ids := []proxy.ServerID{"a", "b"}
	rounds := 0
	for seed := range uint64(200) {
		for _, policy := range proxy.Presets() {
			random := rand.New(rand.NewPCG(seed, 0))
			now, ahead := time.Now(), time.Duration(0)
			steady, leaping := NewSchedule(policy, nil), NewSchedule(policy, nil)
			for step := range 60 {
				now = now.Add([]time.Duration{time.Millisecond, time.Second, 30 * time.Second, 10 * time.Minute}[random.IntN(4)])
				if random.IntN(4) == 0 {
					ahead += []time.Duration{-time.Hour, time.Hour}[random.IntN(2)]
				}
				kind, id, failed := random.IntN(5), ids[random.IntN(2)], random.IntN(2) == 0
				do := func(s *Schedule, now time.Time) (lines []string) {
					switch kind {
					case 0:
						s.Learn(proxy.PeerAppeared{ID: id, Incarnation: fmt.Sprint(step)}, now)
					case 1:
						s.Learn(proxy.PeerGone{ID: id}, now)
					case 2:
						s.Learn(proxy.PeerAddress{ID: id, Address: "a:1"}, now)
					case 3:
						s.Changed(now)
					}
					for _, r := range s.Due(now) {
						lines = append(lines, fmt.Sprintf("%+v", r))
						s.Finished(r, failed, now)
					}
					if at, ok := s.Wake(); ok {
						lines = append(lines, at.Sub(now).String())
					}
					return lines
				}
				want, got := do(steady, now), do(leaping, leap.Wall(now, ahead))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s, seed %d, step %d, the clock is %s ahead (-steady +leaping):\n%s", policy.Name, seed, step, ahead, diff)
				}
				rounds += len(want)
			}
		}
	}
	if rounds < 1000 {
		t.Errorf("%d rounds: this proves nothing", rounds)
	}
}

// If the clock of this server, or of a server that writes a lease, is changed, servers are live or
// gone for as long as before.
func TestLeasesOfAClockThatLeaps(t *testing.T) {
	events := map[string]int{}
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0))
		now, here := time.Now(), time.Duration(0)
		there := map[proxy.ServerID]time.Duration{}
		config := RosterConfig{Self: "self", StaleAfter: time.Minute}
		steady, leaping := NewRoster(config), NewRoster(config)
		key := func(id proxy.ServerID, at time.Time) Key {
			return Key{ID: id, Address: "192.0.2.1:1", Renewal: at.Unix()}
		}
		identity := func(id proxy.ServerID, ahead time.Duration, at time.Time) IdentityLease {
			return IdentityLease{ID: id, Holder: "1", Renewed: at.Round(0).Add(ahead)}
		}
		for _, r := range []*Roster{steady, leaping} { // the first sight of a lease uses the time in the lease
			for _, id := range []proxy.ServerID{"a", "b"} {
				r.Key(key(id, now), now)
				r.Identity(identity(id, 0, now), now)
			}
			r.Changes()
		}
		silent := map[proxy.ServerID]bool{}
		for step := range 200 {
			now = now.Add(5 * time.Second)
			switch random.IntN(20) {
			case 0:
				here += []time.Duration{-time.Hour, time.Hour}[random.IntN(2)]
			case 1:
				there["a"] += []time.Duration{-time.Hour, time.Hour}[random.IntN(2)]
			case 2:
				silent["a"] = !silent["a"]
			}
			renew := func(r *Roster, ahead map[proxy.ServerID]time.Duration, seen time.Time) []proxy.Event {
				for _, id := range []proxy.ServerID{"a", "b", "self"} {
					if !silent[id] {
						r.Key(key(id, now), seen)
						r.Identity(identity(id, ahead[id], now), seen)
					}
				}
				return r.Changes()
			}
			want, got := renew(steady, nil, now), renew(leaping, there, leap.Wall(now, here))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, step %d, the clock is %s ahead here and %s there (-steady +leaping):\n%s", seed, step, here, there["a"], diff)
			}
			for _, e := range want {
				events[fmt.Sprintf("%T", e)]++
			}
		}
	}
	if events["proxy.PeerAddress"] < 100 {
		t.Errorf("%v: this proves nothing", events)
	}
}

// The first sight of an identity lease compares two clocks. If this server's clock is far ahead, a
// server without a key does not count until the next renewal.
func TestFirstSightOfALeaseByAnotherClock(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		ahead time.Duration // of this server's clock
		live  bool
	}{
		"the same":              {0, true},
		"ahead by five seconds": {5 * time.Second, true},
		"ahead by an hour":      {time.Hour, false},
		"behind by an hour":     {-time.Hour, true},
	} {
		r := NewRoster(RosterConfig{Self: "self", StaleAfter: time.Minute})
		r.SetDirect(map[proxy.ServerID]string{"a": "192.0.2.1:1"})
		lease := IdentityLease{ID: "a", Holder: "1", Renewed: now.Round(0)}
		here := leap.Wall(now, c.ahead)
		r.Identity(lease, here)
		if state := r.join("a", r.members["a"]); state.live != c.live {
			t.Errorf("%s: %+v; want live %t", name, state, c.live)
		}
		lease.Renewed = lease.Renewed.Add(5 * time.Second)
		r.Identity(lease, here.Add(5*time.Second))
		if state := r.join("a", r.members["a"]); !state.live || state.address == "" {
			t.Errorf("%s, after the next renewal: %+v", name, state)
		}
	}
}
