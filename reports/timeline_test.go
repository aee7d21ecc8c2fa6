package reports

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/history"
)

func TestBucketWidth(t *testing.T) {
	for _, c := range []struct{ end, want time.Duration }{
		{0, 100 * time.Millisecond},
		{12 * time.Second, 100 * time.Millisecond},
		{12*time.Second + 1, 200 * time.Millisecond},
		{90 * time.Second, time.Second},
		{10 * time.Minute, 5 * time.Second},
		{history.Forever, 100_000_000 * time.Second},
	} {
		t.Run(c.end.String(), func(t *testing.T) {
			if got := bucketWidth(c.end, 3); got != c.want {
				t.Errorf("bucketWidth is %v, want %v", got, c.want)
			}
		})
	}
}

func TestStateBands(t *testing.T) {
	change := func(incarnation int, state history.State, t float64) history.Lifecycle {
		return history.Lifecycle{Server: "a", Incarnation: incarnation, State: state, At: at(t)}
	}
	type band struct {
		State      history.State
		Start, End Seconds
	}
	for _, c := range []struct {
		name    string
		changes []history.Lifecycle
		want    []band
	}{
		{"nothing known", nil, nil},
		{"start", []history.Lifecycle{change(1, history.StateStarting, 1), change(1, history.StateReady, 3)},
			[]band{{"starting", 1, 3}, {"ready", 3, 10}}},
		{
			"pause while starting", []history.Lifecycle{change(1, history.StateStarting, 1), change(1, history.StatePaused, 2),
				change(1, history.StateResumed, 4)},
			[]band{{"starting", 1, 2}, {"paused", 2, 4}, {"starting", 4, 10}},
		},
		{
			"resumed without a pause", []history.Lifecycle{change(1, history.StateReady, 1), change(1, history.StateResumed, 2)},
			[]band{{"ready", 1, 10}},
		},
		{
			"the end is noticed late", []history.Lifecycle{change(1, history.StateReady, 1), change(2, history.StateStarting, 5),
				change(1, history.StateStopped, 6)},
			[]band{{"ready", 1, 5}, {"starting", 5, 10}},
		},
		{
			"in any order, beyond the end", []history.Lifecycle{change(1, history.StateStopped, 99), change(1, history.StateReady, 1)},
			[]band{{"ready", 1, 10}, {"stopped", 10, 10}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []band
			for _, b := range stateBands(&history.History{Lifecycle: c.changes}, "a", at(10)) {
				got = append(got, band{b.State, b.StartSeconds, b.EndSeconds})
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("bands (-want +got):\n%s", diff)
			}
		})
	}
}

// With many servers, the buckets of all of them together are no more than with a few.
func TestBucketsOfManyServers(t *testing.T) {
	for servers, want := range map[int]time.Duration{10: time.Second, 50: 5 * time.Second, 1000: 10 * time.Second} {
		if got := bucketWidth(90*time.Second, servers); got != want {
			t.Errorf("%d servers: bucketWidth is %v, want %v", servers, got, want)
		}
	}
}

// TestEveryOperationIsCounted checks that counts and buckets add up to the history, except for
// requests that the run cancelled.
func TestEveryOperationIsCounted(t *testing.T) {
	h := bigRun()
	r := reportOf(h, nil, Options{})
	counted, drawn := 0, 0
	for _, c := range r.Counts {
		counted += c.Count
	}
	for _, l := range r.Timeline.Lanes {
		for _, b := range l.Buckets {
			drawn += b.Total()
		}
	}
	if counted != len(h.Operations) || drawn != len(h.Operations) {
		t.Errorf("%d operations are counted and %d drawn, want %d", counted, drawn, len(h.Operations))
	}
}

// TestNewIsPure checks that the order of the records makes no difference, and that New does not
// change the history.
func TestNewIsPure(t *testing.T) {
	h := smallRun()
	want := reportOf(h, smallVerdicts(), Options{})
	if diff := cmp.Diff(smallRun(), h); diff != "" {
		t.Errorf("New changed the history:\n%s", diff)
	}
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		shuffle(random, h.Operations)
		shuffle(random, h.Lifecycle)
		shuffle(random, h.Served)
		shuffle(random, h.Steps)
		shuffle(random, h.Faults)
		if diff := cmp.Diff(want, reportOf(h, smallVerdicts(), Options{})); diff != "" {
			t.Fatalf("seed %d: another order gives another report (-want +got):\n%s", seed, diff)
		}
	}
}

func shuffle[R any](random *rand.Rand, records []R) {
	random.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
}
