package run

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/skewproof/skewproof/internal/scenario"
)

// Held returns the directories of runs that hold a cluster and whose paths begin with prefix.
func Held(ctx context.Context, prefix string) (held []string) {
	parent, name := filepath.Split(prefix)
	entries, _ := os.ReadDir(cmp.Or(parent, ".")) // without a directory there is no run
	for _, entry := range entries {
		dir := parent + entry.Name()
		if _, err := os.Lstat(Dir(dir).File(socketName)); err != nil || !strings.HasPrefix(entry.Name(), name) {
			continue
		}
		if conn, err := Dir(dir).dial(ctx); err == nil { // a run that was killed leaves its socket
			_ = conn.Close()
			held = append(held, dir)
		}
	}
	return held
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
