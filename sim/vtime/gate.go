package vtime

// Gate is what the events of one process go through: while it is shut they are held back, as in a process that is stopped (SIGSTOP), and
// once it is closed they are dropped, as in one that was killed. The zero value is open.
type Gate struct {
	shut, closed bool
	held         []event
	tasks        []*Task
}

// Open reports whether events go through.
func (g *Gate) Open() bool { return g == nil || !g.shut && !g.closed }

// Shut holds events back until Reopen.
func (g *Gate) Shut() { g.shut = true }

// Reopen lets through what was held back, in its order, and what comes.
func (g *Gate) Reopen(l *Loop) {
	g.shut = false
	held := g.held
	g.held = nil
	for _, e := range held {
		l.push(l.now, e)
	}
}

// Close drops all events for good, and unwinds the tasks of the gate wherever they wait.
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
