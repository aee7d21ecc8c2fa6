package fabric

import (
	"github.com/Shopify/toxiproxy/v2/stream"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
)

// tally counts the effects of one active fault on the connections of its link. It is guarded by
// link.mu.
type tally struct {
	effect  fault.Effect
	streams [stream.NumDirections]bool // in which the fault acts

	refused  int // link totals at the injection
	bytes    [stream.NumDirections]int64
	before   map[*conn]progress // of the connections that were open when the fault began to act; nil before that
	cut      int
	affected int
}

// progress is the progress of a connection's sources: bytes read, and whether they have ended.
type progress struct {
	in    [stream.NumDirections]int64
	ended [stream.NumDirections]bool
}

func (c *conn) progress() progress {
	var now progress
	for d, p := range c.pipes {
		now.in[d] = p.in.Load()
		now.ended[d] = p.ended.Load() == inOrder
	}
	return now
}

// begin is called when the fault acts. Data sent before does not count. So the evidence may omit a
// little of the effect, but never claims too much.
func (t *tally) begin(open map[*conn]struct{}) {
	t.before = make(map[*conn]progress, len(open))
	for c := range open {
		t.before[c] = c.progress()
	}
}

// touched reports whether the fault has affected the connection so far.
func (t *tally) touched(c *conn) bool {
	if t.before == nil {
		return false
	}
	was, is := t.before[c], c.progress()
	for d, on := range t.streams {
		if !on {
			continue
		}
		switch t.effect.Affects {
		case fault.WhatSends:
			if is.in[d] > was.in[d] {
				return true
			}
		case fault.WhatEnds:
			if is.ended[d] && !was.ended[d] {
				return true
			}
		case fault.WhatBreaks:
		}
	}
	return false
}

// breaks reports whether this fault is the cause if a toxic has ended a stream in that direction.
// Each stream has at most one such fault, see link.compatible.
func (t *tally) breaks(d stream.Direction) bool { return t.effect.Breaks && t.streams[d] }

// leave is called when a connection ends.
func (t *tally) leave(c *conn) {
	if t.touched(c) {
		t.affected++
	}
	delete(t.before, c)
}

// end counts and returns the open connections that were affected. It is called before the fault is
// removed, because the fault does not affect data sent after that.
func (t *tally) end(open map[*conn]struct{}) []*conn {
	var affected []*conn
	for c := range open {
		if t.touched(c) {
			affected = append(affected, c)
		}
	}
	t.affected += len(affected)
	t.before = nil
	return affected
}

// evidence is called after the fault was removed, with the link's totals.
func (t *tally) evidence(refused int, bytes [stream.NumDirections]int64) history.Evidence {
	e := history.Evidence{
		Cut:       t.cut,
		Affected:  t.affected,
		BytesUp:   bytes[stream.Upstream] - t.bytes[stream.Upstream],
		BytesDown: bytes[stream.Downstream] - t.bytes[stream.Downstream],
	}
	if t.effect.Disables { // no other kind refuses connections
		e.Refused = refused - t.refused
	}
	return e
}

func (l *link) attach(t *tally) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.refused, t.bytes = l.refused, l.carried()
	l.tallies[t] = struct{}{}
}

func (l *link) beginTally(t *tally) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.begin(l.open)
}

func (l *link) endTally(t *tally) []*conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return t.end(l.open)
}

func (l *link) detach(t *tally) history.Evidence {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tallies, t)
	return t.evidence(l.refused, l.carried())
}

func (l *link) carried() (bytes [stream.NumDirections]int64) {
	for d := range bytes {
		bytes[d] = l.bytes[d].Load()
	}
	return bytes
}
