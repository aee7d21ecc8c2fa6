package sim

import (
	"fmt"
	"io"

	"github.com/skewproof/skewproof/sim/vtime"
)

// eventKind is the kind of an entry in a trace.
type eventKind uint8

const (
	eventLifecycle eventKind = iota
	eventStep
	eventAsk
	eventAnswered
	eventDecided
	eventAttempted
	eventLease
	eventFetched
	eventExtensions
)

var eventNames = [...]string{"process", "step", "ask", "answered", "decided", "attempted", "lease", "fetched", "extensions"}

// entry is one line of a trace. The meaning of a and b depends on the kind; a is usually a server.
type entry struct {
	at   vtime.Time
	kind eventKind
	a, b int
	c    uint64
}

// trace is the record of a run. Each entry updates its hash; the entries themselves are kept only
// if keep is true.
type trace struct {
	hash    uint64 // of all entries
	keep    bool
	entries []entry
}

// FNV-1a, 64 bits, over the fields as numbers. It is fast and gives the same result on every
// machine. (hash/fnv works on bytes.)
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func (t *trace) reset(keep bool) {
	*t = trace{hash: fnvOffset, keep: keep, entries: t.entries[:0]}
}

func (t *trace) add(at vtime.Time, kind eventKind, a, b int, c uint64) {
	what := (uint64(kind)<<56 | uint64(uint16(a))<<40 | uint64(uint32(b))) ^ c*0x9e3779b97f4a7c15
	t.hash = (t.hash ^ uint64(at)) * fnvPrime
	t.hash = (t.hash ^ what) * fnvPrime
	t.hash ^= t.hash >> 29
	if t.keep {
		t.entries = append(t.entries, entry{at, kind, a, b, c})
	}
}

// write writes the lines of a trace.
func (t *trace) write(w io.Writer, names []string) error {
	name := func(i int) string {
		if i >= 0 && i < len(names) {
			return names[i]
		}
		return fmt.Sprint(i)
	}
	for _, e := range t.entries {
		if _, err := fmt.Fprintf(w, "%14.6f %-10s %-6s %d %x\n", e.at.Seconds(), eventNames[e.kind], name(e.a), e.b, e.c); err != nil {
			return err
		}
	}
	return nil
}

// hashString returns the hash of a string.
func hashString(s string) uint64 {
	h := uint64(fnvOffset)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
