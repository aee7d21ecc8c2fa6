package peers

import (
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/skewproof/skewproof/proxy"
)

// Upstream's work queue shares this bucket among all keys' retries (client-go, util/workqueue,
// DefaultTypedControllerRateLimiter).
const (
	bucketRate  = rate.Limit(10) // retries a second
	bucketBurst = 100
)

// allPeers is the key of the periodic rounds through all peers. No lease has an empty name.
const allPeers = proxy.ServerID("")

// Schedule says which peers are asked what they serve, and when. Make it with [NewSchedule]. It is
// pure: time and randomness are arguments, so that a simulator can use it. It is not safe for
// concurrent use.
//
// Under OnlyChanged, every peer has its own rounds: at once when its lease or address changes, or
// when requests to it begin to fail; again after a failure; and every Interval. With Together, the
// rounds of several peers run at the same time, otherwise one after the other.
//
// Without OnlyChanged, the schedule is upstream's work queue (pkg/util/peerproxy/peer_discovery.go,
// client-go util/workqueue). A key is a lease, and for each key there is a round through all peers.
// Only one round runs at a time. If any peer fails, the key is retried with its own delay and
// count. The caller applies Together within a round.
//
// Without KeepLastGood, rounds always go through all peers, because a round replaces all knowledge.
type Schedule struct {
	policy proxy.FetchingPolicy
	single bool // each peer has its own rounds
	random func() float64

	queue         *queue
	known         byID[struct{}]  // peers whose leases exist
	regular       byID[time.Time] // when the next regular round is due
	changingUntil time.Time       // documents are expected to change until then
}

// Round is one unit of work.
type Round struct {
	// Key is the lease that has changed, or "" for a periodic round through all peers.
	Key proxy.ServerID
	// All is true if the round asks every peer. Otherwise it asks only the peer with the identity
	// Key.
	All bool
}

// NewSchedule returns the schedule for a policy. random returns a number in [0, 1); nil: no jitter.
func NewSchedule(p proxy.Policy, random func() float64) *Schedule {
	s := &Schedule{
		policy: p.Fetching,
		single: p.Fetching.OnlyChanged && p.Knowledge.KeepLastGood,
		random: random,
	}
	var bucket *rate.Limiter
	if !s.single {
		bucket = rate.NewLimiter(bucketRate, bucketBurst)
	}
	s.queue = newQueue(p.Fetching, bucket)
	return s
}

// Clone returns an independent schedule in the same state, with another source of randomness.
func (s *Schedule) Clone(random func() float64, now time.Time) *Schedule {
	c := *s
	c.random = random
	c.queue = s.queue.clone(now)
	c.known, c.regular = slices.Clone(s.known), slices.Clone(s.regular)
	return &c
}

// Learn observes events about leases, addresses, failed requests and extensions. It ignores other
// events.
func (s *Schedule) Learn(e proxy.Event, now time.Time) {
	switch e := e.(type) {
	case proxy.PeerAppeared:
		s.lease(e.ID, now)
	case proxy.PeerAddress:
		// Upstream does not watch addresses. If a round needs an unknown address, it waits for its
		// retry.
		if s.single && e.Address != "" {
			s.lease(e.ID, now)
		}
	case proxy.PeerGone:
		s.gone(e.ID, now)
	case proxy.PeerFailed:
		if s.single && s.known.has(e.ID) {
			s.lease(e.ID, now)
		}
	case proxy.Extensions:
		s.Changed(now)
	}
}

// lease observes that a peer's lease has appeared or has another holder.
func (s *Schedule) lease(id proxy.ServerID, now time.Time) {
	s.advance(now)
	s.known.set(id, struct{}{})
	s.queue.add(id)
	if !s.single && s.policy.Interval > 0 && !s.regular.has(allPeers) {
		s.regular.set(allPeers, now.Add(s.interval()))
	}
}

// gone observes that a peer's lease was deleted. Upstream starts a round without that peer.
func (s *Schedule) gone(id proxy.ServerID, now time.Time) {
	s.advance(now)
	s.known.remove(id)
	if !s.single {
		s.queue.add(id)
		if len(s.known) == 0 {
			s.regular.remove(allPeers)
		}
		return
	}
	s.queue.forget(id)
	s.regular.remove(id)
}

// afterChangeFor is how long peers' documents are expected to change after a change here. A
// document counts for a deletion only if it was fetched 3 s later (see proxy.ExtensionsExact), and
// some peers notice it later than that.
const afterChangeFor = 12 * time.Second

// Changed observes that custom resources or aggregated APIs have changed, or may have changed.
// Under a policy with AfterChange, each peer is then asked every AfterChange for a while.
func (s *Schedule) Changed(now time.Time) {
	s.advance(now)
	if !s.single || s.policy.AfterChange <= 0 {
		return
	}
	s.changingUntil = now.Add(afterChangeFor)
	soon := now.Add(s.policy.AfterChange)
	for i := range s.regular {
		if s.regular[i].value.After(soon) {
			s.regular[i].value = soon
		}
	}
}

// Due returns the rounds that begin now. The caller must call Finished for each when it has ended.
func (s *Schedule) Due(now time.Time) []Round {
	s.advance(now)
	var rounds []Round
	for s.room() {
		key, ok := s.queue.next()
		if !ok {
			break
		}
		rounds = append(rounds, Round{Key: key, All: !s.single})
	}
	return rounds
}

// advance queues the rounds that are due. Every method calls it before it handles its own event.
func (s *Schedule) advance(now time.Time) {
	s.regular = slices.DeleteFunc(s.regular, func(e entry[time.Time]) bool {
		due := !e.value.After(now)
		if due {
			s.queue.addAt(e.id, e.value)
		}
		return due
	})
	s.queue.advance(now)
}

// room reports whether another round may begin now.
func (s *Schedule) room() bool { return len(s.queue.running) == 0 || s.single && s.policy.Together }

// Finished says that a round has ended. failed says that the round must be repeated, see
// [Succeeded].
func (s *Schedule) Finished(r Round, failed bool, now time.Time) {
	s.advance(now)
	if s.single && !s.known.has(r.Key) { // the peer has left
		s.queue.done(r.Key, false, now)
		return
	}
	dropped := s.queue.done(r.Key, failed, now)
	switch {
	case s.policy.Interval <= 0, failed && !dropped:
	case s.single:
		next := now.Add(s.interval())
		if soon := now.Add(s.policy.AfterChange); now.Before(s.changingUntil) && soon.Before(next) {
			next = soon
		}
		s.regular.set(r.Key, next)
	case r.Key == allPeers && len(s.known) > 0:
		s.regular.set(allPeers, now.Add(s.interval()))
	}
}

// Wake returns when Due next returns a round if no event comes before. Zero: at once; not ok:
// never.
func (s *Schedule) Wake() (at time.Time, ok bool) {
	if !s.room() {
		return time.Time{}, false // a round must finish first
	}
	if len(s.queue.ready) > 0 {
		return time.Time{}, true
	}
	if len(s.queue.waiting) > 0 {
		at, ok = s.queue.waiting[0].at, true
	}
	for _, next := range s.regular {
		if !ok || next.value.Before(at) {
			at, ok = next.value, true
		}
	}
	return at, ok
}

// interval returns the time to the next regular round.
func (s *Schedule) interval() time.Duration {
	jitter := 0.0
	if s.policy.Jitter > 0 && s.random != nil {
		jitter = s.policy.Jitter * (2*s.random() - 1)
	}
	return max(time.Millisecond, time.Duration(float64(s.policy.Interval)*(1+jitter)))
}

// Succeeded reports whether an answer needs no retry. Under LastErrorOnly, only the last document
// counts (upstream: fetchNewDiscoveryFor overwrites /api's error with /apis').
func Succeeded(q proxy.Quirks, r proxy.FetchResult) bool {
	if q.LastErrorOnly {
		return r.Roots[proxy.RootGroups].Failed == ""
	}
	return r.Roots[proxy.RootCore].Failed == "" && r.Roots[proxy.RootGroups].Failed == ""
}
