package invariant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// settle is how far the recorded time of a fault may be from its effect: a toxic is switched by one
// call, and connections that are under way then may still get through or be broken.
const settle = 100 * time.Millisecond

// The ends of links that are not servers.
const (
	client = "client"
	etcd   = "etcd"
)

// link is a direction of connecting: a cut of a→b does not affect connections that b makes to a.
type link struct{ from, to string }

// reach is what the run did to a link over a window.
type reach uint8

const (
	reachOpen    reach = iota // nothing, or only delays
	reachPartial              // something, for part of the window or on some connections
	reachClosed               // no response could get through at any time
)

// delaying are the kinds of faults under which everything arrives in the end.
var delaying = map[string]bool{"latency": true, "bandwidth": true, "slicer": true, "slow-close": true}

// linkFaults are the faults on a link that overlap w, in time order. A fault with an empty From
// applies to every source.
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

// reach says whether connections that from makes could get through to to, and what impaired them,
// for people. Faults in the process of to (kill, pause) show in its timeline. w is widened by
// settle.
func (f *Facts) reach(from, to string, w window) (reach, string) {
	wide := w.widen(settle)
	var obstacles []string
	var blocks []window
	for _, fault := range f.linkFaults(link{from, to}, wide) {
		if !fault.Blocks && delaying[fault.Kind] {
			continue
		}
		if fault.Blocks {
			blocks = append(blocks, window{fault.Start, fault.End})
		}
		obstacles = append(obstacles, fmt.Sprintf("fault %d, %s %s→%s since %s",
			fault.ID, fault.Kind, cmp.Or(fault.From, "all"), fault.To, clock(fault.Start)))
	}
	if s := f.byName[to]; s != nil {
		for _, span := range s.line {
			if span.up && span.phase == phaseReady || !span.overlaps(wide) {
				continue
			}
			if span.phase == phasePaused || span.phase == phaseDown {
				blocks = append(blocks, span.window)
			}
			obstacles = append(obstacles, to+" "+span.phase.String()+" since "+clock(span.from))
		}
	}
	switch {
	case len(obstacles) == 0:
		return reachOpen, ""
	case covers(blocks, wide):
		return reachClosed, strings.Join(obstacles, "; ")
	default:
		return reachPartial, strings.Join(obstacles, "; ")
	}
}

// undisturbed reports whether there was no fault on the link, not even a delay.
func (f *Facts) undisturbed(from, to string, w window) bool {
	return len(f.linkFaults(link{from, to}, w.widen(settle))) == 0
}

// covers reports whether the blocks together cover all of w.
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

func faultOrder(a, b history.Fault) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Detail, b.Detail))
}

// proxyOff reports whether a step had switched off the proxy of a server at some time in w. Such a
// server need not do what the proxy does. A run of the subject "none", in which no server has a
// proxy, has no such faults and is judged in full.
func (f *Facts) proxyOff(server string, w window) bool {
	return slices.ContainsFunc(f.faultList, func(fault history.Fault) bool {
		return fault.Kind == history.FaultProxyOff && fault.Server == server && (window{fault.Start, fault.End}).overlaps(w)
	})
}
