package run

import (
	"context"
	"path/filepath"

	"github.com/skewproof/skewproof/internal/scenario"
)

// Held returns the directories of runs that hold a cluster and whose paths begin with prefix.
func Held(ctx context.Context, prefix string) (held []string) {
	sockets, _ := filepath.Glob(escape(prefix) + "*/" + socketName) // the only error is a bad pattern
	for _, socket := range sockets {
		dir := filepath.Dir(socket)
		if conn, err := Dir(dir).dial(ctx); err == nil { // a run that was killed leaves its socket
			_ = conn.Close()
			held = append(held, dir)
		}
	}
	return held
}

// escape makes a path a pattern that matches this path only.
func escape(path string) string {
	var pattern []rune
	for _, r := range path {
		switch r {
		case '*', '?', '[', '\\':
			pattern = append(pattern, '\\')
		}
		pattern = append(pattern, r)
	}
	return string(pattern)
}

// NextWords returns the words that can follow the words of a step on this run's cluster.
func (d Dir) NextWords(words, versions []string) []string {
	var servers []string
	if m, err := d.readManifest(); err == nil {
		for _, s := range m.Run.Servers {
			servers = append(servers, s.Name)
		}
	}
	next := scenario.NextWords(words, servers, versions)
	if len(words) == 0 {
		next = append(next, listWord)
	}
	return next
}
