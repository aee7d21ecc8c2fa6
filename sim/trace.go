package sim

import (
	"fmt"
	"io"

	"github.com/skewproof/skewproof/sim/vtime"
)

// eventKind is a kind of thing that a trace tells.
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

// entry is one line of a trace. What a and b mean depends on the kind; a is mostly a server.
type entry struct {
	at   vtime.Time
	kind eventKind
	a, b int
	c    uint64
}

// trace is the record of a run. Its hash is updated with each entry; entries are kept only with
// keep.
type trace struct {
	hash    uint64 // of everything
	shape   uint64 // of everything but the times, in order
	keep    bool
	entries []entry
}

// FNV-1a, 64 bits, over the fields as numbers: fast, and the same everywhere (hash/fnv works on
// bytes).
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func (t *trace) reset(keep bool) {
	*t = trace{hash: fnvOffset, shape: fnvOffset, keep: keep, entries: t.entries[:0]}
}

func (t *trace) add(at vtime.Time, kind eventKind, a, b int, c uint64) {
	what := (uint64(kind)<<56 | uint64(uint16(a))<<40 | uint64(uint32(b))) ^ c*0x9e3779b97f4a7c15
	t.shape = (t.shape ^ what) * fnvPrime
	t.shape ^= t.shape >> 29
	t.hash = (t.hash ^ uint64(at)) * fnvPrime
	t.hash = (t.hash ^ what) * fnvPrime
	t.hash ^= t.hash >> 29
	if t.keep {
		t.entries = append(t.entries, entry{at, kind, a, b, c})
	}
}

// write renders the lines of a trace.
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

// hashString makes a number of a string.
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
