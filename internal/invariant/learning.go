package invariant

import (
	"github.com/skewproof/skewproof/internal/history"
)

// Started says whether the servers that could have served a request became ready shortly before the
// request. All of them must have, since the asked server knows a server that has been ready for
// long. For discovery, which every server serves, one of the other servers is enough.
type Started string

// These values say how long ago a server became ready.
const (
	StartedLong Started = "" // longer ago, or no other server could have served the request
	// StartedLately means: within the time in which a start counts as a change. A signature has it
	// only if another obstacle existed (Elsewhere), which may delay what the asked server learns.
	StartedLately Started = "lately"
	// StartedJust means: no longer ago than the start itself took. A server that tries to learn of
	// a starting peer, with a delay that doubles, can be late by at most that time.
	StartedJust Started = "just"
)

// lifetime holds when a process was started and when it became ready.
type lifetime struct{ started, ready history.Time }

// learned is the time until which peers learn of the process, if they retry with a delay that
// doubles.
func (l lifetime) learned() history.Time { return later(l.ready, l.ready-l.started) }

// lifetimeOf returns the lifetime of one process. It returns false if the process was never ready,
// or if the history does not show its start.
func (s *server) lifetimeOf(incarnation int) (lifetime, bool) {
	var l lifetime
	starting := false
	for _, span := range s.line {
		switch {
		case span.incarnation != incarnation:
		case span.phase == phaseStarting && !starting:
			l.started, starting = span.from, true
		case span.phase == phaseReady && starting:
			l.ready = span.from
			return l, true
		}
	}
	return l, false
}

// startedAgo says how long the process that a server had at a time had been ready. A start before
// since does not count as a change.
func (s *server) startedAgo(at, since history.Time) Started {
	l, ok := s.lifetimeOf(s.line.at(at).incarnation)
	switch {
	case !ok || l.ready > at || l.learned() < since:
		return StartedLong
	case at <= l.learned():
		return StartedJust
	default:
		return StartedLately
	}
}

var startedRank = map[Started]int{StartedLong: 0, StartedLately: 1, StartedJust: 2}

// started says how long the servers that could have served the operation had been ready.
func (f *Facts) started(o *observation, candidates []Candidate, since history.Time) Started {
	if o.resource != nil && o.resource.key == (key{}) {
		latest := StartedLong
		for _, s := range f.servers {
			if ago := s.startedAgo(o.op.Start, since); s != o.asked && startedRank[ago] > startedRank[latest] {
				latest = ago
			}
		}
		return latest
	}
	if len(candidates) == 0 {
		return StartedLong
	}
	first := StartedJust
	for _, c := range candidates {
		if c.Server == o.op.Server {
			return StartedLong
		}
		if ago := f.byName[c.Server].startedAgo(o.op.Start, since); startedRank[ago] < startedRank[first] {
			first = ago
		}
	}
	return first
}

// elsewhere is the strongest obstacle between the asked server and the servers that could not have
// served the operation. The obstacle keeps the asked server from learning of them, and may delay
// what it learns of other servers.
func (f *Facts) elsewhere(o *observation, candidates []Candidate, since history.Time) Obstacle {
	w := window{since, o.op.End}
	strongest := ObstacleNone
	if len(candidates) == 0 {
		return strongest
	}
	serves := map[string]bool{o.op.Server: true}
	for _, c := range candidates {
		serves[c.Server] = true
	}
	for _, s := range f.servers {
		if serves[s.name] {
			continue
		}
		strongest = stronger(strongest, f.obstacleBefore(o.op.Server, s.name, w))
		if len(f.linkFaults(link{o.op.Server, s.name}, w.widen(settle))) > 0 { // a slow link delays a fetch too
			strongest = stronger(strongest, ObstacleLink)
		}
		strongest = stronger(strongest, f.processObstacle(s.name, w, func(s span) bool {
			return s.left == history.StateKilled || s.left == history.StateCrashed
		}))
		strongest = stronger(strongest, f.etcdObstacle(s.name, w))
	}
	return strongest
}

// etcdObstacle is ObstacleEtcd if the server was cut off from etcd at any time in w. During such a
// cut the server's address expires, and peers cannot ask the server.
func (f *Facts) etcdObstacle(of string, w window) Obstacle {
	if r, _ := f.reach(of, etcd, w); r != reachOpen {
		return ObstacleEtcd
	}
	return ObstacleNone
}
