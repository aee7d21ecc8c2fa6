package vtime

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestEventsRunByTimeThenByOrderOfScheduling(t *testing.T) {
	var l Loop
	defer l.Close()
	var got []string
	note := func(s string) func() {
		return func() { got = append(got, fmt.Sprintf("%s@%d", s, l.Now()/time.Second)) }
	}
	l.After(3*time.Second, nil, note("late"))
	l.After(time.Second, nil, note("first"))
	l.After(time.Second, nil, func() {
		note("second")()
		l.At(0, nil, note("what has passed is now")) // after the events that were scheduled for this instant before
	})
	l.After(time.Second, nil, note("third"))
	l.Run(2 * time.Second)
	if want := []string{"first@1", "second@1", "third@1", "what has passed is now@1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if l.Now() != 2*time.Second {
		t.Errorf("Now() = %s after Run(2s)", l.Now())
	}
}

func TestManyEventsRunInOrder(t *testing.T) {
	var l Loop
	defer l.Close()
	var got []Time
	for i := range 1000 {
		l.At(Time(i*7919%1000), nil, func() { got = append(got, l.Now()) })
	}
	l.Run(1000)
	if !slices.IsSorted(got) || len(got) != 1000 {
		t.Errorf("%d events, sorted: %t", len(got), slices.IsSorted(got))
	}
}

func TestStoppedTimerDoesNotFire(t *testing.T) {
	var l Loop
	defer l.Close()
	rang := 0
	var early, late Timer
	early.Set(&l, time.Second, nil, Func(func() { rang++ }))
	late.Set(&l, time.Second, nil, Func(func() { rang++ }))
	if !early.Stop() || early.Stop() {
		t.Error("want true from the first Stop only")
	}
	l.Run(time.Minute)
	if rang != 1 || late.Stop() {
		t.Errorf("fired %d times, or Stop returned true afterwards", rang)
	}
}

func TestTasksWaitForVirtualTime(t *testing.T) {
	var l Loop
	defer l.Close()
	var got []string
	note := func(s string) { got = append(got, fmt.Sprintf("%s@%d", s, l.Now()/time.Second)) }
	sleeper := l.Go(nil, func(t *Task) {
		note("begun")
		t.Sleep(time.Second)
		note("slept")
		t.Wait()
		note("woken")
		t.Sleep(time.Second) // the second wake was for the earlier wait
		note("again")
	})
	l.After(5*time.Second, nil, sleeper.Wake)
	l.After(5*time.Second, nil, sleeper.Wake)
	l.Run(time.Minute)
	if want := []string{"begun@0", "slept@1", "woken@5", "again@6"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWakeBeforeWaitIsNotLost(t *testing.T) {
	var l Loop
	defer l.Close()
	done := false
	l.Go(nil, func(t *Task) {
		t.Wake()
		t.Wait()
		done = true
	})
	l.Run(0)
	if !done {
		t.Error("the task did not go on")
	}
}

func TestShutGateHoldsEventsInOrder(t *testing.T) {
	var l Loop
	defer l.Close()
	var g Gate
	var got []string
	l.Go(&g, func(t *Task) {
		t.Sleep(2 * time.Second)
		got = append(got, fmt.Sprint("task@", l.Now()))
	})
	l.After(3*time.Second, &g, func() { got = append(got, fmt.Sprint("event@", l.Now())) })
	l.After(time.Second, nil, g.Shut)
	l.After(time.Minute, nil, func() { g.Reopen(&l) })
	l.Run(time.Hour)
	if want := []string{"task@1m0s", "event@1m0s"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestClosedGateUnwindsTasksAndDropsEvents(t *testing.T) {
	var l Loop
	defer l.Close()
	var g Gate
	var unwound, other bool
	l.Go(&g, func(t *Task) {
		defer func() { unwound = true }()
		t.Sleep(time.Hour)
		panic("came back from the dead")
	})
	l.Go(&g, func(*Task) { g.Close() }) // as the last action of a process that crashes
	l.After(time.Minute, &g, func() { panic("an event of the dead") })
	l.Go(nil, func(t *Task) { t.Sleep(time.Second); other = true })
	l.Run(time.Hour)
	if !unwound || !other {
		t.Errorf("unwound %t, the others went on %t", unwound, other)
	}
	if len(l.live) != 0 {
		t.Errorf("%d tasks are left", len(l.live))
	}
}

func TestClosedGateStopsTaskBeforeItStarts(t *testing.T) {
	var l Loop
	defer l.Close()
	var g Gate
	l.Go(&g, func(*Task) { panic("begun") })
	g.Close()
	l.Run(time.Second)
}

func TestUnwoundTaskCannotWait(t *testing.T) {
	var l Loop
	var reached bool
	l.Go(nil, func(t *Task) {
		defer func() {
			defer func() { reached = true }()
			t.Sleep(time.Hour)
			panic("slept in its grave")
		}()
		t.Wait()
	})
	l.Run(0)
	l.Close()
	if !reached {
		t.Error("the deferred function did not run")
	}
}

func TestPanicOfTaskReachesTheCaller(t *testing.T) {
	var l Loop
	l.Go(nil, func(*Task) { panic("a defect") })
	defer func() {
		if r := recover(); r != "a defect" {
			t.Errorf("recovered %v", r)
		}
	}()
	l.Run(0)
}

func TestLoopCanBeReused(t *testing.T) {
	var l Loop
	defer l.Close()
	for round := range 3 {
		if l.Now() != 0 || l.Steps() != 0 {
			t.Fatalf("round %d begins at %s after %d steps", round, l.Now(), l.Steps())
		}
		done := 0
		for range 10 {
			l.Go(nil, func(t *Task) { t.Sleep(time.Second); done++ })
		}
		l.Go(nil, func(t *Task) { t.Wait() })
		l.After(time.Hour, nil, func() { t.Error("an event of an earlier round") })
		l.Run(time.Minute)
		if done != 10 {
			t.Errorf("round %d: %d tasks ended", round, done)
		}
		l.Reset()
	}
}

func BenchmarkTask(b *testing.B) {
	var l Loop
	defer l.Close()
	b.ReportAllocs()
	for b.Loop() {
		l.Go(nil, func(t *Task) { t.Sleep(time.Second) })
		l.RunWhile(func() bool { return true })
	}
}
