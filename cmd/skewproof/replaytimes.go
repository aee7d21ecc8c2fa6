package main

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim"
)

// Real leases and retries need real time, and nobody waits for an hour: no wait between two steps is shorter or longer than these.
const (
	shortestWait = 2 * time.Second
	longestWait  = time.Minute
	// observed is how long the load goes on after the moment of a request of the file: it asks for everything that there is, and needs a
	// while to come by what the file asks for.
	observed = 15 * time.Second
)

// moment is a step of a case that does something, and the time until the next one; the first is the beginning, which does nothing.
type moment struct {
	index int // of the step; -1 is the beginning
	at    time.Duration
	// wait is how long the case waits after it, and until is when, counted from it, the last request of that time has been observed; 0
	// if there is none.
	wait, until time.Duration
}

// moments are the steps of a case that do something, with the times in which nothing but waiting is done between them. Steps are taken to need
// no time themselves.
func moments(c *sim.Case) []moment {
	all := []moment{{index: -1}}
	ends := make([]time.Duration, len(c.Steps)+1) // of the steps, counted from 1
	now := time.Duration(0)
	for i, s := range c.Steps {
		last := &all[len(all)-1]
		switch s.Action {
		case scenario.Soak:
			now += s.For
			last.wait = now - last.at
		case scenario.Outlast: // of the last disturbance, which the last moment mostly is
			now = max(now, last.at+s.For)
			last.wait = now - last.at
		default:
			all = append(all, moment{index: i, at: now})
		}
		ends[i+1] = now
	}
	for _, r := range c.Requests {
		sent := ends[r.Step] + r.After
		n := 0
		for i, m := range all {
			if m.index < r.Step || m.at < sent { // it follows that step, or is sent when that one has long been done
				n = i
			}
		}
		all[n].until = max(all[n].until, sent-all[n].at+observed)
	}
	return all
}

// scaled is how long real processes are given after a moment.
func (m moment) scaled() time.Duration {
	d := max(m.wait, m.until)
	if d == 0 {
		return 0
	}
	return min(max(d, shortestWait), longestWait)
}
