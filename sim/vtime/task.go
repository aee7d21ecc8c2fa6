package vtime

import (
	"iter"
	"time"
)

// Task is a function that may wait for virtual time: a coroutine of the loop. Its methods may be called from within its function only,
// save for Wake.
type Task struct {
	loop *Loop
	gate *Gate
	do   Work
	at   int    // in loop.live
	turn uint64 // counts the waits, so that a wake that comes too late is told from one for the present wait

	next      func() (struct{}, bool)
	stop      func()
	yield     func(struct{}) bool
	running   bool
	abandoned bool // to be unwound at the next wait
}

// unwound is the panic that ends a task from within.
type unwound struct{}

// Work is what a task does. What exists anyway can be it, where a function would have to be made.
type Work interface{ Do(*Task) }

type workFunc func(*Task)

func (f workFunc) Do(t *Task) { f(t) }

// Go starts a task now, as Start does.
func (l *Loop) Go(gate *Gate, do func(*Task)) *Task { return l.Start(gate, workFunc(do)) }

// Start starts a task now. Its gate, if it has one, holds back or drops every continuation of it, and ends it when it closes.
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

// coroutine carries out one function after the other: to make a coroutine costs more than most functions.
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
	if !t.abandoned { // before it began
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
	for i, o := range g.tasks {
		if o == t {
			g.tasks[i] = g.tasks[len(g.tasks)-1]
			g.tasks = g.tasks[:len(g.tasks)-1]
			return
		}
	}
}

func (t *Task) resume() {
	t.turn++
	t.running = true
	t.next()
	t.running = false
}

// Now is the present.
func (t *Task) Now() Time { return t.loop.now }

// Wait waits until somebody calls Wake. It returns at the first Wake after it was called; who waits for a condition asks for it again.
func (t *Task) Wait() {
	if t.abandoned { // deferred functions of an unwound task must not wait
		panic(unwound{})
	}
	t.yield(struct{}{})
	if t.abandoned {
		panic(unwound{})
	}
}

// Sleep waits for a while.
func (t *Task) Sleep(d time.Duration) {
	t.wakeAt(t.loop.now + max(0, d))
	t.Wait()
}

// Wake ends the present wait of the task, or the next one if it is not waiting, at this instant, after what was asked for before.
func (t *Task) Wake() { t.wakeAt(t.loop.now) }

func (t *Task) wakeAt(at Time) {
	t.loop.push(at, event{gate: t.gate, what: (*waking)(t), turn: t.turn})
}

// waking is that a task goes on.
type waking Task

func (w *waking) Happen() { (*Task)(w).resume() }

// abandon unwinds a task that waits or has not begun; one that is running, at its next wait.
func (t *Task) abandon() {
	t.abandoned = true
	if !t.running {
		t.resume()
	}
}
