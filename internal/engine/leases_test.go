package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// advertising is a cluster whose one server has an endpoint lease.
type advertising struct {
	leaving
	says  string
	fails error
	while func() // called while the lease is read
}

func (a *advertising) Advertised(context.Context, string) (string, error) {
	if a.while != nil {
		a.while()
	}
	return a.says, a.fails
}

// The content of a lease counts from the first read to the last read that finds it. A failed read
// says nothing. A read during which the process ends also says nothing, because the next process
// may advertise another address.
func TestLeasesAreRecordedForAsLongAsTheySayTheSame(t *testing.T) {
	server := listing(t, "served")
	c := &advertising{leaving: leaving{one: one{at: server}, incarnation: 1}}
	var now history.Time
	truth, read := newTruthOf(t, c, func() history.Time { return now }, "a")
	l := newLeases(c, truth.recorder, t.Logf)
	look := func(at history.Time, says string, fails error) {
		now, c.says, c.fails = at, says, fails
		l.look(t.Context(), "a")
	}
	look(1, "", nil)
	look(2, "one", nil)
	look(3, "one", nil)
	look(4, "nonsense", errors.New("etcd is gone"))
	look(5, "one", nil)
	look(6, "two", nil)
	c.incarnation = 2
	look(7, "two", nil)
	c.while = func() { c.incarnation = 0 }
	look(8, "three", nil)
	c.while = nil
	look(9, "four", nil) // no process is ready
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l.watch(ended, []string{"a"})
	want := []history.Lease{
		{Server: "a", Incarnation: 1, First: 1, Last: 1},
		{Server: "a", Incarnation: 1, First: 2, Last: 5, Advertised: "one"},
		{Server: "a", Incarnation: 1, First: 6, Last: 6, Advertised: "two"},
		{Server: "a", Incarnation: 2, First: 7, Last: 7, Advertised: "two"},
	}
	if got := read().Leases; !slices.Equal(got, want) {
		t.Errorf("recorded %+v, want %+v", got, want)
	}
}

// If a cluster cannot read leases, its history has none, and the run does not wait for them.
func TestWhereLeasesCannotBeSeenNoneAreRecorded(t *testing.T) {
	server := listing(t, "served")
	c := &leaving{one: one{at: server}, incarnation: 1}
	truth, read := newTruthOf(t, c, func() history.Time { return 9 }, "a")
	newLeases(c, truth.recorder, t.Logf).watch(t.Context(), []string{"a"})
	if got := read().Leases; len(got) != 0 {
		t.Errorf("recorded %+v", got)
	}
}

// During a run, the lease of every server is read again and again.
func TestLeasesAreWatched(t *testing.T) {
	server := listing(t, "served")
	c := &advertising{leaving: leaving{one: one{at: server}, incarnation: 1}, says: "one"}
	truth, read := newTruthOf(t, c, nil, "a")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var looks int
	c.while = func() {
		if looks++; looks == 2 {
			cancel()
		}
	}
	var watched sync.WaitGroup
	watched.Go(func() { newLeases(c, truth.recorder, t.Logf).watch(ctx, []string{"a"}) })
	watched.Wait()
	if got := read().Leases; len(got) != 1 || got[0].Advertised != "one" {
		t.Errorf("recorded %+v after %d looks", got, looks)
	}
}
