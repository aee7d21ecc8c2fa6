// Package vtime is the simulator's time: a single-threaded loop that runs events in the order of
// their virtual time, and tasks, which are functions that can wait. It never reads a clock, and it
// runs events of the same instant in the order in which they were scheduled.
package vtime

import "time"

// Time is a virtual instant: the time since the run began.
type Time = time.Duration

// Loop is virtual time. The zero value is ready, at time 0. It is not safe for concurrent use:
// events and tasks run in the goroutine that calls Run.
type Loop struct {
	now    Time
	seq    uint64
	queue  []due   // a heap
	events []event // by due.slot
	free   []int   // slots
	idle   []*Task // coroutines without a function
	live   []*Task // in any order
	steps  int
}

// Event is an action to run at an instant. An existing value can implement it, which saves a
// closure.
type Event interface{ Happen() }

// Func is a function as an event.
type Func func()

// Happen calls the function.
func (f Func) Happen() { f() }

// due is the time at which an event is due.
type due struct {
	at   Time
	seq  uint64 // events of the same instant run in the order in which they were scheduled
	slot int    // of the event in Loop.events
}

type event struct {
	gate *Gate
	what Event
	turn uint64 // number of the wait that the event ends
}

// Now returns the present time.
func (l *Loop) Now() Time { return l.now }

// Steps returns the number of events that have run.
func (l *Loop) Steps() int { return l.steps }

// Schedule runs an event at a time, or now if this time has passed. The event runs only if gate is
// nil or open.
func (l *Loop) Schedule(at Time, gate *Gate, what Event) {
	l.push(max(at, l.now), event{gate: gate, what: what})
}

// At is Schedule for a function.
func (l *Loop) At(at Time, gate *Gate, do func()) { l.Schedule(at, gate, Func(do)) }

// After runs do after a time.
func (l *Loop) After(d time.Duration, gate *Gate, do func()) { l.At(l.now+max(0, d), gate, do) }

// Timer runs an event after a time unless it is stopped before. The zero value is a timer that was
// not set.
type Timer struct{ what Event }

// Set starts the timer. A timer may be set only once in a run.
func (t *Timer) Set(l *Loop, d time.Duration, gate *Gate, what Event) {
	t.what = what
	l.Schedule(l.now+max(0, d), gate, t)
}

// Stop stops the timer, and reports whether the event had not run yet.
func (t *Timer) Stop() bool {
	was := t.what != nil
	t.what = nil
	return was
}

// Happen implements [Event].
func (t *Timer) Happen() {
	if what := t.what; what != nil {
		t.what = nil
		what.Happen()
	}
}

// Skip sets the time. No event may be due before it.
func (l *Loop) Skip(to Time) { l.now = max(l.now, to) }

// Run runs every event that is due until the given time, and sets the time to it.
func (l *Loop) Run(until Time) {
	for len(l.queue) > 0 && l.queue[0].at <= until {
		l.step()
	}
	l.now = max(l.now, until)
}

// RunWhile runs events while there are any and more returns true. It calls more before each event.
func (l *Loop) RunWhile(more func() bool) {
	for len(l.queue) > 0 && more() {
		l.step()
	}
}

func (l *Loop) step() {
	var e event
	l.now, e = l.pop()
	l.steps++
	l.carryOut(e)
}

func (l *Loop) carryOut(e event) {
	switch {
	case e.gate != nil && e.gate.closed:
	case e.gate != nil && e.gate.shut:
		e.gate.held = append(e.gate.held, e)
	default:
		if t, ok := e.what.(*waking); !ok {
			e.what.Happen()
		} else if t.turn == e.turn {
			t.Happen()
		}
	}
}

// Close does what Reset does, and frees the coroutines too. The loop can be used again.
func (l *Loop) Close() {
	l.Reset()
	for _, t := range l.idle {
		t.stop()
	}
	*l = Loop{}
}

// Reset unwinds every task, drops all events and goes back to time 0. It keeps its memory.
func (l *Loop) Reset() {
	for len(l.live) > 0 { // unwound tasks may start others
		l.live[len(l.live)-1].abandon()
	}
	clear(l.events)
	*l = Loop{queue: l.queue[:0], events: l.events[:0], free: l.free[:0], idle: l.idle, live: l.live[:0]}
}

func (d due) before(o due) bool { return d.at < o.at || d.at == o.at && d.seq < o.seq }

// push adds an event to the queue, a 4-ary heap, which is less deep than a binary heap. The entries
// are moved often, so they are small and have no pointers.
func (l *Loop) push(at Time, e event) {
	slot := len(l.events)
	if n := len(l.free); n > 0 {
		slot = l.free[n-1]
		l.free = l.free[:n-1]
		l.events[slot] = e
	} else {
		l.events = append(l.events, e)
	}
	l.seq++
	d := due{at: at, seq: l.seq, slot: slot}
	l.queue = append(l.queue, d)
	q := l.queue
	i := len(q) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !d.before(q[parent]) {
			break
		}
		q[i] = q[parent]
		i = parent
	}
	q[i] = d
}

func (l *Loop) pop() (Time, event) {
	q := l.queue
	top, last := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	l.queue = q
	e := l.events[top.slot]
	l.events[top.slot] = event{}
	l.free = append(l.free, top.slot)
	if len(q) == 0 {
		return top.at, e
	}
	i := 0
	for {
		first := 4*i + 1
		if first >= len(q) {
			break
		}
		child := first
		for other := first + 1; other < min(first+4, len(q)); other++ {
			if q[other].before(q[child]) {
				child = other
			}
		}
		if !q[child].before(last) {
			break
		}
		q[i] = q[child]
		i = child
	}
	q[i] = last
	return top.at, e
}

// Gate controls the events of one process. While it is shut, events are held back, as in a process
// after SIGSTOP. Once it is closed, events are dropped, as after SIGKILL. The zero value is open.
type Gate struct {
	shut, closed bool
	held         []event
	tasks        []*Task
}

// Open reports whether the gate lets events run. A nil gate does.
func (g *Gate) Open() bool { return g == nil || !g.shut && !g.closed }

// Shut holds events back until Reopen.
func (g *Gate) Shut() { g.shut = true }

// Reopen opens the gate, and schedules the events that it has held back, in their order.
func (g *Gate) Reopen(l *Loop) {
	g.shut = false
	held := g.held
	g.held = nil
	for _, e := range held {
		l.push(l.now, e)
	}
}

// Close drops all events from now on, and unwinds the tasks of the gate.
func (g *Gate) Close() {
	g.closed, g.held = true, nil
	tasks := g.tasks
	g.tasks = nil
	for _, t := range tasks {
		if t.gate == g && t.do != nil {
			t.abandon()
		}
	}
}
