package fabric

import (
	"github.com/Shopify/toxiproxy/v2/stream"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
)

// watch gathers the evidence of one active fault on its link. It is guarded by link.mu.
type watch struct {
	effect  fault.Effect
	streams [stream.NumDirections]bool // those the fault is about

	refused  int // link totals at the injection
	bytes    [stream.NumDirections]int64
	base     map[*conn]mark // connections that were open when the fault was in force; nil before that
	cut      int
	affected int
}

// mark is how far a connection had come.
type mark struct {
	in    [stream.NumDirections]int64
	ended [stream.NumDirections]bool
}

func (c *conn) mark() mark {
	var m mark
	for d, h := range c.halves {
		m.in[d] = h.in.Load()
		m.ended[d] = h.ended.Load() == inOrder
	}
	return m
}

// begin is called when the fault is in force. What flowed before is not its doing: evidence may miss what happened in the
// moment between, but never claims too much.
func (w *watch) begin(open map[*conn]struct{}) {
	w.base = make(map[*conn]mark, len(open))
	for c := range open {
		w.base[c] = c.mark()
	}
}

// touched reports whether the fault has affected the connection so far.
func (w *watch) touched(c *conn) bool {
	if w.base == nil {
		return false
	}
	was, is := w.base[c], c.mark()
	for d, on := range w.streams {
		if !on {
			continue
		}
		switch w.effect.Affects {
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

// breaks reports whether it is this fault's doing when a toxic has ended a stream in that direction. There is at most one
// such fault for each stream, see link.compatible.
func (w *watch) breaks(d stream.Direction) bool { return w.effect.Breaks && w.streams[d] }

// leave is called when a connection ends.
func (w *watch) leave(c *conn) {
	if w.touched(c) {
		w.affected++
	}
	delete(w.base, c)
}

// settle returns which of the open connections were affected, and counts them. It is called before the fault is taken away:
// what flows after that is healthy.
func (w *watch) settle(open map[*conn]struct{}) []*conn {
	var affected []*conn
	for c := range open {
		if w.touched(c) {
			affected = append(affected, c)
		}
	}
	w.affected += len(affected)
	w.base = nil
	return affected
}

// evidence is called when the fault has been taken away, with the link's totals.
func (w *watch) evidence(refused int, bytes [stream.NumDirections]int64) history.Evidence {
	e := history.Evidence{
		Cut:       w.cut,
		Affected:  w.affected,
		BytesUp:   bytes[stream.Upstream] - w.bytes[stream.Upstream],
		BytesDown: bytes[stream.Downstream] - w.bytes[stream.Downstream],
	}
	if w.effect.Disables { // no other kind turns connections away
		e.Refused = refused - w.refused
	}
	return e
}

func (l *link) attach(w *watch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.refused, w.bytes = l.refused, l.carried()
	l.watches[w] = struct{}{}
}

func (l *link) begin(w *watch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.begin(l.open)
}

func (l *link) settle(w *watch) []*conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return w.settle(l.open)
}

func (l *link) detach(w *watch) history.Evidence {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.watches, w)
	return w.evidence(l.refused, l.carried())
}

func (l *link) carried() (bytes [stream.NumDirections]int64) {
	for d := range bytes {
		bytes[d] = l.bytes[d].Load()
	}
	return bytes
}
