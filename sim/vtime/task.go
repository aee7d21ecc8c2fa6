package vtime

import (
	"iter"
	"slices"
	"time"
)

// Task is a function that can wait for virtual time: a coroutine of the loop. Only its own function
// may call its methods, except for Wake.
type Task struct {
	loop *Loop
	gate *Gate
	do   Work
	at   int    // in loop.live
	turn uint64 // counts the waits, so that a wake for an earlier wait has no effect

	next      func() (struct{}, bool)
	stop      func()
	yield     func(struct{}) bool
	running   bool
	abandoned bool // to be unwound at the next wait
}

// unwound is the panic that unwinds a task.
type unwound struct{}

// Work is the function of a task. An existing value can implement it, which saves a closure.
type Work interface{ Do(*Task) }

type workFunc func(*Task)

func (f workFunc) Do(t *Task) { f(t) }

// Go is Start for a function.
func (l *Loop) Go(gate *Gate, do func(*Task)) *Task { return l.Start(gate, workFunc(do)) }

// Start starts a task now. Its gate (may be nil) applies each time that the task continues after a
// wait. When the gate closes, the task is unwound.
func (l *Loop) Start(gate *Gate, do Work) *Task {
	var t *Task
	if n := len(l.idle); n > 0 {
		t = l.idle[n-1]
		l.idle = l.idle[:n-1]
	} else {
		t = &Task{loop: l}
		t.next, t.stop = iter.Pull(t.coroutine)
	}
	t.gate, t.do, t.abandoned = gate, do, false
	t.at = len(l.live)
	l.live = append(l.live, t)
	if gate != nil {
		gate.tasks = append(gate.tasks, t)
	}
	t.Wake()
	return t
}

// coroutine runs one task after another, because making a coroutine costs more than most tasks.
func (t *Task) coroutine(yield func(struct{}) bool) {
	t.yield = yield
	for {
		if t.do != nil {
			t.carryOut()
			t.finish()
		}
		if !yield(struct{}{}) {
			return
		}
	}
}

func (t *Task) carryOut() {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(unwound); !ok {
				panic(r)
			}
		}
	}()
	if !t.abandoned { // not abandoned before it began
		t.do.Do(t)
	}
}

func (t *Task) finish() {
	l := t.loop
	last := l.live[len(l.live)-1]
	l.live[t.at] = last
	last.at = t.at
	l.live = l.live[:len(l.live)-1]
	if t.gate != nil {
		t.gate.forget(t)
	}
	t.do, t.gate = nil, nil
	t.turn++
	l.idle = append(l.idle, t)
}

func (g *Gate) forget(t *Task) {
	if i := slices.Index(g.tasks, t); i >= 0 {
		g.tasks[i] = g.tasks[len(g.tasks)-1]
		g.tasks = g.tasks[:len(g.tasks)-1]
	}
}

func (t *Task) resume() {
	t.turn++
	t.running = true
	t.next()
	t.running = false
}

// Now is the time of the loop.
func (t *Task) Now() Time { return t.loop.now }

// Wait returns at the next call of Wake. A caller that waits for a condition calls Wait in a loop.
func (t *Task) Wait() {
	if t.abandoned { // deferred functions of an unwound task must not wait
		panic(unwound{})
	}
	t.yield(struct{}{})
	if t.abandoned {
		panic(unwound{})
	}
}

// Sleep waits for a time, or until Wake is called.
func (t *Task) Sleep(d time.Duration) {
	t.wakeAt(t.loop.now + max(0, d))
	t.Wait()
}

// Wake ends the task's wait, or its next wait if it is not waiting. The task continues at this
// instant, after the events that are already scheduled for this instant.
func (t *Task) Wake() { t.wakeAt(t.loop.now) }

func (t *Task) wakeAt(at Time) {
	t.loop.push(at, event{gate: t.gate, what: (*waking)(t), turn: t.turn})
}

// waking is the event that resumes a task.
type waking Task

func (w *waking) Happen() { (*Task)(w).resume() }

// abandon unwinds a task now, or at its next wait if it is running.
func (t *Task) abandon() {
	t.abandoned = true
	if !t.running {
		t.resume()
	}
}
