package local

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Queued implements [cluster.Queuer] by what Linux keeps of each thread (proc(5), schedstat). Where it keeps nothing that is 0.
func (c *Cluster) Queued(name string) time.Duration {
	s, err := c.server(name)
	if err != nil {
		return 0
	}
	now := s.ready.Load()
	if now == nil {
		return 0
	}
	var sum time.Duration
	for _, p := range now.Living() {
		sum += queued("/proc", p.cmd.Process.Pid)
	}
	return sum
}

// queued is for how long the threads of a process have waited for a processor; those that have ended are not counted. proc is where Linux
// tells of processes. Of the three numbers in a schedstat the second is the time spent waiting, in nanoseconds.
func queued(proc string, pid int) time.Duration {
	threads, err := filepath.Glob(filepath.Join(proc, strconv.Itoa(pid), "task", "*", "schedstat"))
	if err != nil {
		return 0 // the pattern is right
	}
	var sum time.Duration
	for _, path := range threads {
		line, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		if fields := strings.Fields(string(line)); len(fields) > 1 {
			if ns, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				sum += time.Duration(ns)
			}
		}
	}
	return sum
}
