package invariant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// settle is how far the record of a fault may be off from its effect: a toxic is switched by one call, and connections
// that are on their way at that moment may still get through, or be broken.
const settle = 100 * time.Millisecond

// The ends of links that are not servers.
const (
	client = "client"
	etcd   = "etcd"
)

// link is a direction of connecting: a cut of a→b leaves connections that b makes to a alone.
type link struct{ from, to string }

// reach is what the run did to a link over a window.
type reach uint8

const (
	reachOpen    reach = iota // nothing, or only delays
	reachPartial              // something, for a part of the window or to a part of the connections
	reachClosed               // no response could get through at any time in the window
)

// delaying are the kinds of faults under which everything arrives in the end.
var delaying = map[string]bool{"latency": true, "bandwidth": true, "slicer": true, "slow-close": true}

// linkFaults are the faults on a link that overlap w, in time order. An empty From means every source.
func (f *Facts) linkFaults(l link, w window) []history.Fault {
	var out []history.Fault
	for _, from := range []string{l.from, ""} {
		for _, fault := range f.faults[link{from, l.to}] {
			if (window{fault.Start, fault.End}).overlaps(w) {
				out = append(out, fault)
			}
		}
	}
	slices.SortStableFunc(out, faultOrder)
	return out
}

// reach says whether connections made by from could get through to to, and what hindered them, for people. A fault on
// the process itself (kill, pause) shows in the life cycle of to. w is widened by settle on both sides.
func (f *Facts) reach(from, to string, w window) (reach, string) {
	wide := w.widen(settle)
	var hindrances []string
	var blocks []window
	impaired := false
	for _, fault := range f.linkFaults(link{from, to}, wide) {
		if !fault.Blocks && delaying[fault.Kind] {
			continue
		}
		impaired = true
		if fault.Blocks {
			blocks = append(blocks, window{fault.Start, fault.End})
		}
		hindrances = append(hindrances, fmt.Sprintf("fault %d, %s %s→%s since %s", fault.ID, fault.Kind, cmp.Or(fault.From, "all"), fault.To, clock(fault.Start)))
	}
	if s := f.byName[to]; s != nil {
		for _, span := range s.line {
			if span.up && span.phase == phaseReady || !span.overlaps(wide) {
				continue
			}
			impaired = true
			if span.phase == phasePaused || span.phase == phaseDown {
				blocks = append(blocks, span.window)
			}
			hindrances = append(hindrances, to+" "+span.phase.String()+" since "+clock(span.from))
		}
	}
	switch {
	case !impaired:
		return reachOpen, ""
	case covers(blocks, wide):
		return reachClosed, strings.Join(hindrances, "; ")
	default:
		return reachPartial, strings.Join(hindrances, "; ")
	}
}

// undisturbed reports whether no fault at all, not even a delay, was on the link.
func (f *Facts) undisturbed(from, to string, w window) bool {
	return len(f.linkFaults(link{from, to}, w.widen(settle))) == 0
}

// covers reports whether the blocks together leave no instant of w free.
func covers(blocks []window, w window) bool {
	slices.SortFunc(blocks, func(a, b window) int { return cmp.Compare(a.from, b.from) })
	at := w.from
	for _, b := range blocks {
		if b.from > at {
			return false
		}
		at = max(at, b.to)
	}
	return at > w.to || at == forever
}

func (p phase) String() string {
	return [...]string{"in an unknown state", "down", "starting", "ready", "paused", "stopping"}[p]
}

// clock writes a time of the run for people: milliseconds are what a reader can tell apart.
func clock(t history.Time) string { return t.Round(time.Millisecond).String() }

func faultOrder(a, b history.Fault) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Detail, b.Detail))
}
