package peers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"

	"github.com/skewproof/skewproof/proxy"
)

// began is a round, with the time since the start at which it began.
type began struct {
	At  time.Duration
	Key proxy.ServerID
}

// occasion is a lease event.
type occasion struct {
	at   time.Duration
	key  proxy.ServerID
	gone bool
}

// rounds says how long each round takes and how it ends, by its number.
type rounds func(n int, r Round) (takes time.Duration, failed bool)

// replay runs a schedule in virtual time.
func replay(s *Schedule, occasions []occasion, outcome rounds, until time.Duration) []began {
	type run struct {
		Round
		ends   time.Time
		failed bool
	}
	var (
		list    []began
		running []run
		now     = epoch
		number  int
	)
	for {
		for len(occasions) > 0 && !epoch.Add(occasions[0].at).After(now) {
			if o := occasions[0]; o.gone {
				s.gone(o.key, now)
			} else {
				s.lease(o.key, now)
			}
			occasions = occasions[1:]
		}
		for _, r := range s.Due(now) {
			takes, failed := outcome(number, r)
			number++
			list = append(list, began{now.Sub(epoch), r.Key})
			running = append(running, run{r, now.Add(takes), failed})
		}
		next, ok := s.Wake()
		for _, r := range running {
			if !ok || r.ends.Before(next) {
				next, ok = r.ends, true
			}
		}
		if len(occasions) > 0 && (!ok || epoch.Add(occasions[0].at).Before(next)) {
			next, ok = epoch.Add(occasions[0].at), true
		}
		if !ok || next.Sub(epoch) > until {
			return list
		}
		now = later(now, next)
		running = slices.DeleteFunc(running, func(r run) bool {
			if r.ends.After(now) {
				return false
			}
			s.Finished(r.Round, r.failed, now)
			return true
		})
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// upstream runs upstream's worker loop on client-go's own queue, on synctest's clock.
func upstream(t *testing.T, retries int, occasions []occasion, outcome rounds, until time.Duration) (list []began) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[proxy.ServerID]())
		start := time.Now()
		go func() {
			for number := 0; ; number++ {
				key, shutdown := queue.Get()
				if shutdown || time.Since(start) > until {
					return
				}
				takes, failed := outcome(number, Round{Key: key, All: true})
				list = append(list, began{time.Since(start), key})
				time.Sleep(takes)
				if failed && queue.NumRequeues(key) < retries {
					queue.AddRateLimited(key)
				} else {
					queue.Forget(key)
				}
				queue.Done(key)
			}
		}()
		for _, o := range occasions {
			time.Sleep(o.at - time.Since(start))
			queue.Add(o.key)
		}
		time.Sleep(until - time.Since(start))
		queue.ShutDown()
	})
	return list
}

// The schedule of upstream's presets begins the same rounds at the same times as client-go's queue.
func TestScheduleLikeUpstreamsQueue(t *testing.T) {
	for _, policy := range []proxy.Policy{proxy.Upstream134(), proxy.Upstream135(), proxy.Upstream136(), proxy.Upstream137()} {
		for seed := range uint64(20) {
			random := rand.New(rand.NewPCG(seed, 1))
			var occasions []occasion
			at := time.Duration(0)
			for range 1 + random.IntN(30) {
				at += time.Duration(random.Int64N(int64(time.Second)>>random.IntN(12)) | 1)
				occasions = append(occasions, occasion{at: at, key: proxy.ServerID(fmt.Sprint("s", random.IntN(5))), gone: random.IntN(4) == 0})
			}
			failing := random.IntN(4)
			longest := time.Second >> random.IntN(12)
			outcome := func(n int, _ Round) (time.Duration, bool) {
				r := rand.New(rand.NewPCG(seed, uint64(n)+2))
				return time.Duration(r.Int64N(int64(longest)) | 1), r.IntN(4) < failing
			}
			const until = 3 * time.Hour
			want := upstream(t, policy.Fetching.Retries, occasions, outcome, until)
			got := replay(NewSchedule(policy, nil), occasions, outcome, until)
			if len(want) == 0 {
				t.Fatalf("%s, seed %d: nothing was fetched, so nothing was compared", policy.Name, seed)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s, seed %d (upstream's -, ours +):\n%s", policy.Name, seed, diff)
			}
		}
	}
}

// If a retry becomes due during a round, and the round's own lease changes meanwhile, the retry
// comes first.
func TestScheduleKeepsUpstreamsOrder(t *testing.T) {
	occasions := []occasion{{at: 1, key: "b"}, {at: 2 * time.Millisecond, key: "a"}, {at: 3 * time.Millisecond, key: "a"}}
	outcome := func(n int, r Round) (time.Duration, bool) {
		if r.Key == "b" {
			return time.Millisecond, n == 0
		}
		return 100 * time.Millisecond, false
	}
	want := upstream(t, 20, occasions, outcome, time.Minute)
	if diff := cmp.Diff(want, replay(NewSchedule(proxy.Upstream137(), nil), occasions, outcome, time.Minute)); diff != "" {
		t.Fatalf("upstream's -, ours +:\n%s", diff)
	}
	var keys []proxy.ServerID
	for _, b := range want {
		keys = append(keys, b.Key)
	}
	if diff := cmp.Diff([]proxy.ServerID{"b", "a", "b", "a"}, keys); diff != "" {
		t.Fatalf("upstream's queue does not do what this test is about: %s", diff)
	}
}

// If there are more retries than the bucket holds, they are limited to ten a second in total.
func TestScheduleSharesUpstreamsBucket(t *testing.T) {
	var occasions []occasion
	for i := range 400 {
		occasions = append(occasions, occasion{at: time.Duration(i+1) * 1001, key: proxy.ServerID(fmt.Sprint("s", i))})
	}
	outcome := func(int, Round) (time.Duration, bool) { return 7 * time.Microsecond, true }
	const until = time.Minute
	want := upstream(t, 20, occasions, outcome, until)
	got := replay(NewSchedule(proxy.Upstream137(), nil), occasions, outcome, until)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("upstream's -, ours +:\n%s", diff)
	}
	if len(got) > 400+100+60*10+1 {
		t.Fatalf("%d rounds in a minute: the bucket did not hold them back", len(got))
	}
}

func TestScheduleReference(t *testing.T) {
	middle := func() float64 { return 0.5 } // no jitter
	fine := func(int, Round) (time.Duration, bool) { return time.Millisecond, false }
	policy := proxy.Reference()
	policy.Fetching.Interval = 30 * time.Second

	t.Run("a lease event asks its own peer only", func(t *testing.T) {
		s := NewSchedule(policy, middle)
		s.lease("a", epoch)
		s.lease("b", epoch)
		want := []Round{{Key: "a"}, {Key: "b"}}
		if diff := cmp.Diff(want, s.Due(epoch)); diff != "" {
			t.Fatal(diff)
		}
		if _, ok := s.Wake(); ok {
			t.Fatal("something is due while both are under way")
		}
	})
	t.Run("every interval", func(t *testing.T) {
		got := replay(NewSchedule(policy, middle), []occasion{{at: 0, key: "a"}}, fine, 61*time.Second)
		want := []began{{0, "a"}, {30*time.Second + time.Millisecond, "a"}, {60*time.Second + 2*time.Millisecond, "a"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
	t.Run("with jitter", func(t *testing.T) {
		for draw, interval := range map[float64]time.Duration{0: 24 * time.Second, 0.75: 33 * time.Second} {
			got := replay(NewSchedule(policy, func() float64 { return draw }), []occasion{{at: 0, key: "a"}}, fine, 35*time.Second)
			if want := (began{interval + time.Millisecond, "a"}); len(got) != 2 || got[1] != want {
				t.Errorf("drawn %v: %v, want a second round %v", draw, got, want)
			}
		}
	})
	t.Run("endless retries with a cap, then the interval again", func(t *testing.T) {
		failing := func(n int, _ Round) (time.Duration, bool) { return 0, n < 200 }
		got := replay(NewSchedule(policy, middle), []occasion{{at: 0, key: "a"}}, failing, time.Hour)
		for i, want := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 5: 1600 * time.Millisecond, 6: 2 * time.Second, 200: 2 * time.Second, 201: 30 * time.Second} {
			if gap := got[i].At - got[i-1].At; gap != want {
				t.Errorf("round %d after %s, want %s", i, gap, want)
			}
		}
	})
	t.Run("a change meanwhile is asked for afterwards", func(t *testing.T) {
		s := NewSchedule(policy, middle)
		s.lease("a", epoch)
		r := s.Due(epoch)
		s.Learn(proxy.PeerAddress{ID: "a", Address: "h:1"}, epoch)
		if again := s.Due(epoch); len(again) > 0 {
			t.Fatalf("asked twice at the same time: %v", again)
		}
		s.Finished(r[0], false, epoch)
		if at, ok := s.Wake(); !ok || !at.IsZero() {
			t.Fatalf("Wake() = %v, %v; want at once", at, ok)
		}
		if diff := cmp.Diff(r, s.Due(epoch)); diff != "" {
			t.Fatal(diff)
		}
	})
	t.Run("a peer that is gone is not asked", func(t *testing.T) {
		s := NewSchedule(policy, middle)
		s.lease("a", epoch)
		s.lease("b", epoch)
		under := s.Due(epoch)
		s.lease("a", epoch)
		s.gone("a", epoch)
		s.gone("b", epoch)
		for _, r := range under {
			s.Finished(r, true, epoch)
		}
		if at, ok := s.Wake(); ok {
			t.Fatalf("something is due at %v", at)
		}
		s.lease("a", epoch)
		if got := s.Due(epoch); len(got) != 1 {
			t.Fatalf("it came back and is not asked: %v", got)
		}
	})
	t.Run("a peer that fails does not delay the others", func(t *testing.T) {
		slow := func(_ int, r Round) (time.Duration, bool) {
			if r.Key == "a" {
				return time.Hour, true
			}
			return 0, false
		}
		got := replay(NewSchedule(policy, middle), []occasion{{at: 0, key: "a"}, {at: 0, key: "b"}}, slow, time.Minute)
		want := []began{{0, "a"}, {0, "b"}, {30 * time.Second, "b"}, {time.Minute, "b"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// The schedule also works with combinations of switches that no preset has.
func TestScheduleSingleSwitches(t *testing.T) {
	fine := func(int, Round) (time.Duration, bool) { return time.Second, false }
	both := []occasion{{at: 0, key: "a"}, {at: 0, key: "b"}}

	t.Run("without Together one after the other", func(t *testing.T) {
		p := proxy.Reference()
		p.Fetching.Together, p.Fetching.Interval = false, 0
		want := []began{{0, "a"}, {time.Second, "b"}}
		if diff := cmp.Diff(want, replay(NewSchedule(p, nil), both, fine, time.Hour)); diff != "" {
			t.Fatal(diff)
		}
	})
	t.Run("upstream with an Interval: rounds through all while there is anybody", func(t *testing.T) {
		p := proxy.Upstream137()
		p.Fetching.Interval = time.Minute
		got := replay(NewSchedule(p, nil), append(slices.Clone(both), occasion{90 * time.Second, "a", true}, occasion{150 * time.Second, "b", true}), fine, time.Hour)
		want := []began{{0, "a"}, {time.Second, "b"}, {time.Minute, ""}, {90 * time.Second, "a"}, {121 * time.Second, ""}, {150 * time.Second, "b"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
	t.Run("without KeepLastGood every round is through all", func(t *testing.T) {
		p := proxy.Reference()
		p.Knowledge.KeepLastGood = false
		s := NewSchedule(p, nil)
		s.lease("a", epoch)
		s.lease("b", epoch)
		if diff := cmp.Diff([]Round{{Key: "a", All: true}}, s.Due(epoch)); diff != "" {
			t.Fatal(diff)
		}
	})
	t.Run("without FirstRetry a failure waits for the next occasion", func(t *testing.T) {
		p := proxy.Upstream137()
		p.Fetching.FirstRetry = 0
		failing := func(int, Round) (time.Duration, bool) { return 0, true }
		if got := replay(NewSchedule(p, nil), []occasion{{at: 0, key: "a"}}, failing, time.Hour); len(got) != 1 {
			t.Fatalf("%d rounds, want 1", len(got))
		}
	})
}

// After a change of custom resources, peers are asked every two seconds, until a document is new
// enough to count.
func TestScheduleAfterChange(t *testing.T) {
	ask := func(p proxy.Policy) []time.Duration {
		s := NewSchedule(p, nil)
		s.lease("a", epoch)
		var asked []time.Duration
		for at := time.Duration(0); at <= 50*time.Second; at += 500 * time.Millisecond {
			now := epoch.Add(at)
			if at == 5*time.Second {
				s.Changed(now)
			}
			for _, r := range s.Due(now) {
				asked = append(asked, at)
				s.Finished(r, false, now)
			}
		}
		return asked
	}
	policy := proxy.Reference()
	policy.Fetching.Interval = 30 * time.Second
	policy.Fetching.Jitter = 0
	seconds := func(at ...time.Duration) (list []time.Duration) {
		for _, a := range at {
			list = append(list, a*time.Second)
		}
		return list
	}
	if diff := cmp.Diff(seconds(0, 7, 9, 11, 13, 15, 17, 47), ask(policy)); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	policy.Fetching.AfterChange = 0
	if diff := cmp.Diff(seconds(0, 30), ask(policy)); diff != "" {
		t.Errorf("without AfterChange, asked (-want +got):\n%s", diff)
	}
}

func TestSucceeded(t *testing.T) {
	half := proxy.FetchResult{}
	half.Roots[proxy.RootCore].Failed = "x"
	other := proxy.FetchResult{}
	other.Roots[proxy.RootGroups].Failed = "x"
	reference, old := proxy.Reference().Quirks, proxy.Upstream137().Quirks
	for _, tc := range []struct {
		name   string
		policy proxy.Quirks
		result proxy.FetchResult
		want   bool
	}{
		{"both came", reference, proxy.FetchResult{}, true},
		{"no /api", reference, half, false},
		{"no /apis", reference, other, false},
		{"upstream: no /api", old, half, true},
		{"upstream: no /apis", old, other, false},
	} {
		if got := Succeeded(tc.policy, tc.result); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// The fetcher and the simulator pass these events to a schedule of peer "a". The peer was just
// asked.
func TestScheduleLearns(t *testing.T) {
	policy := proxy.Reference()
	for name, tc := range map[string]struct {
		event proxy.Event
		due   []Round
		wake  time.Duration // after the event, when the due rounds have ended; 0 if never
	}{
		"a lease":                 {proxy.PeerAppeared{ID: "b", Incarnation: "1"}, []Round{{Key: "b"}}, policy.Fetching.Interval},
		"an address":              {proxy.PeerAddress{ID: "a", Address: "a.test:6443"}, []Round{{Key: "a"}}, policy.Fetching.Interval},
		"one without a proxy":     {proxy.PeerAddress{ID: "a", Address: "a.test:6443", Direct: true}, []Round{{Key: "a"}}, policy.Fetching.Interval},
		"that there is none":      {proxy.PeerAddress{ID: "a"}, nil, policy.Fetching.Interval},
		"that a lease is deleted": {proxy.PeerGone{ID: "a"}, nil, 0},
		"other extensions":        {proxy.Extensions{}, nil, policy.Fetching.AfterChange},
		"that requests fail":      {proxy.PeerFailed{ID: "a"}, []Round{{Key: "a"}}, policy.Fetching.Interval},
		"that others do":          {proxy.PeerFailed{ID: "b"}, nil, policy.Fetching.Interval},
		"an answer":               {proxy.PeerAnswered{ID: "a"}, nil, policy.Fetching.Interval},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSchedule(policy, func() float64 { return 0.5 }) // no jitter
			s.Learn(proxy.PeerAppeared{ID: "a", Incarnation: "1"}, epoch)
			done := func() (due []Round) {
				due = s.Due(epoch)
				for _, r := range due {
					s.Finished(r, false, epoch)
				}
				return due
			}
			done()
			s.Learn(tc.event, epoch)
			if diff := cmp.Diff(tc.due, done()); diff != "" {
				t.Errorf("due (-want +got):\n%s", diff)
			}
			if at, ok := s.Wake(); ok != (tc.wake > 0) || ok && at.Sub(epoch) != tc.wake {
				t.Errorf("something is due at %v (%v), want %v", at, ok, tc.wake)
			}
		})
	}
}
