package kind

import (
	"fmt"

	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/history"
)

// watch records a crash: the end of a process of a server that was ready and that nobody asked to end. Its kubelet starts it again, by and by; that is the
// server's next incarnation.
func (s *server) watch(i *incarnation) {
	select {
	case <-i.over:
	case <-s.cluster.ctx.Done():
		return
	}
	s.serving.CompareAndSwap(int64(i.number), 0)
	if i.asked.Load() {
		return
	}
	s.crash(i)
	if pids := i.pids(); len(pids) > 0 { // half a server is nothing that a scenario could mean
		_, _ = inNode(s.cluster.ctx, s.place.Node, append([]string{"kill", "-KILL"}, pids...)...)
	}
	for _, p := range i.processes {
		if err := p.gone(s.cluster.ctx, stopTimeout); err != nil {
			return
		}
	}
	s.revive(i)
}

// revive follows the kubelet, which starts a crashed server again, unless a step has taken the matter up meanwhile.
func (s *server) revive(crashed *incarnation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last() != crashed || crashed.asked.Load() {
		return
	}
	now := s.begin()
	if err := s.launch(s.cluster.ctx, now, func(string) error { return nil }); err != nil && s.cluster.ctx.Err() == nil {
		s.cluster.config.Status("%s: %v", s.place.Name, err)
	}
}

// crash records, once, that an incarnation has ended as it should not.
func (s *server) crash(i *incarnation) {
	p := i.first
	detail := p.pod + ": "
	if found := local.Panics(p.logPath, p.logFrom, -1); len(found) > 0 {
		detail += found[0] + "; "
	}
	detail += "ended; last lines of its log:\n" + p.lastLines(8)
	if s.recordCrash(i, detail) {
		s.cluster.config.Status("%s: CRASHED: %s", s.place.Name, detail)
	}
}

// recordCrash reports whether there was no record yet.
func (s *server) recordCrash(i *incarnation, detail string) bool {
	if !i.crashed.CompareAndSwap(false, true) {
		return false
	}
	s.cluster.config.Recorder.Lifecycle(history.Lifecycle{
		Server: s.place.Name, Incarnation: i.number, Version: i.version,
		State: history.StateCrashed, At: s.cluster.config.Recorder.Now(), Detail: detail,
	})
	return true
}

// RecordPanics records, as crashes at the end of the run, panics that incarnations survived but left in their logs.
func (c *Cluster) RecordPanics() {
	for _, p := range c.places {
		s := c.servers[p.Name]
		s.mu.Lock()
		for n, i := range s.incarnations {
			var found []string
			for _, process := range i.processes {
				found = append(found, local.Panics(process.logPath, process.logFrom, logEnd(process, s.incarnations[n+1:]))...)
			}
			if len(found) > 0 {
				s.recordCrash(i, fmt.Sprintf("its logs tell of %d panics; the first: %s", len(found), found[0]))
			}
		}
		s.mu.Unlock()
	}
}

// logEnd is where the output of p ends in its log, which later incarnations share; -1 if p wrote last.
func logEnd(p *process, later []*incarnation) int64 {
	for _, i := range later {
		for _, next := range i.processes {
			if next.logPath == p.logPath {
				return next.logFrom
			}
		}
	}
	return -1
}
