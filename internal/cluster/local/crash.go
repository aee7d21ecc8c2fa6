package local

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// watch records a crash: the end of a process of a server that was ready and that nobody asked to end. What is left of the
// server is ended as well: half a server is nothing that a scenario could mean, and StartServer shall find a clean host.
func (s *server) watch(i *incarnation) {
	<-i.over
	s.serving.CompareAndSwap(int64(i.number), 0)
	if !i.asked.Load() {
		s.crash(i, i.first)
		_ = i.kill() // of processes that have ended, or are ours to kill
	}
}

// crash records, once, that an incarnation has ended as it should not, by the end of p.
func (s *server) crash(i *incarnation, p *process) {
	detail := p.name + ": "
	if found := Panics(p.logPath, p.logFrom, -1); len(found) > 0 { // of which the last lines, a stack, say nothing
		detail += found[0] + "; "
	}
	detail += p.epitaph()
	if !s.recordCrash(i, detail) {
		return
	}
	s.cluster.config.Status("%s: CRASHED: %s", s.place.Name, detail)
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
				found = append(found, Panics(process.logPath, process.logFrom, logEnd(process, s.incarnations[n+1:]))...)
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

// Panics returns the lines between two offsets of a log (to the end, if to is negative) that tell of a panic.
// Source: HandleCrash in k8s.io/apimachinery/pkg/util/runtime logs "Observed a panic"; net/http logs "http: panic serving" of a handler;
// the others are the Go runtime's.
func Panics(logPath string, from, to int64) []string {
	log, err := readFrom(logPath, from)
	if err != nil {
		return nil
	}
	if to >= 0 {
		log = log[:min(int64(len(log)), to-from)]
	}
	var found []string
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte("Observed a panic")) || bytes.Contains(line, []byte(": panic serving ")) ||
			bytes.HasPrefix(line, []byte("panic: ")) || bytes.HasPrefix(line, []byte("fatal error: ")) {
			found = append(found, firstOf(strings.TrimSpace(string(line))))
		}
	}
	return found
}

// firstOf is as much of a line as people want to read: structured logs hold a whole stack in one.
func firstOf(line string) string {
	const most = 300
	line, _, _ = strings.Cut(line, `\ngoroutine `)
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}
