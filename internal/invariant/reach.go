package invariant

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// settle is how far the recorded time of a fault may be from its effect. One call switches a toxic,
// and connections that exist at that moment may still get through or may break.
const settle = 100 * time.Millisecond

// These ends of links are not servers.
const (
	client = "client"
	etcd   = "etcd"
)

// cut is the kind of the fault that closes the connections of a link and refuses new ones.
const cut = "cut"

// link is a direction of connecting. A cut of a→b does not affect connections that b makes to a.
type link struct{ from, to string }

// reach is what the run did to a link over a window.
type reach uint8

const (
	reachOpen    reach = iota // no fault, or only delays
	reachPartial              // a fault for part of the window or on some connections
	reachClosed               // no response could get through at any time
)

// delaying holds the kinds of faults that delay data but lose none.
var delaying = map[string]bool{"latency": true, "bandwidth": true, "slicer": true, "slow-close": true}

// linkFaults returns the faults on a link that overlap w, in time order. A fault with an empty From
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

// reach says whether connections from one end to the other could get through, and describes for
// people what impaired them. Faults in the process of to (kill, pause) show in its timeline. reach
// widens w by settle.
func (f *Facts) reach(from, to string, w window) (reach, string) {
	wide := w.widen(settle)
	obstacles, blocks := f.inTheWay(from, to, wide)
	switch {
	case len(obstacles) == 0:
		return reachOpen, ""
	case covers(blocks, wide):
		return reachClosed, strings.Join(obstacles, "; ")
	default:
		return reachPartial, strings.Join(obstacles, "; ")
	}
}

// slowed reports whether a fault delayed what one end sent to another, or its answers, at any time
// in w.
func (f *Facts) slowed(from, to string, w window) bool {
	return slices.ContainsFunc(f.linkFaults(link{from, to}, w), func(fault history.Fault) bool { return delaying[fault.Kind] })
}

// inTheWay describes for people what impaired connections from one server to another in w. It also
// returns the times in which nothing got through.
func (f *Facts) inTheWay(from, to string, w window) (obstacles []string, blocks []window) {
	for _, fault := range f.linkFaults(link{from, to}, w) {
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
			if span.answers() || !span.overlaps(w) {
				continue
			}
			if span.phase == phasePaused || span.phase == phaseDown {
				blocks = append(blocks, span.window)
			}
			obstacles = append(obstacles, to+" "+span.phase.String()+" since "+clock(span.from))
		}
	}
	return obstacles, blocks
}

// refuses reports whether every connection from one server to another was refused in w, so that
// nothing that was sent can have arrived. Over a link that is silent, or that broke within w, a
// request may have arrived whose answer was lost.
func (f *Facts) refuses(from, to string, w window) bool {
	wide := w.widen(settle)
	var refusals []window
	for _, fault := range f.linkFaults(link{from, to}, wide) {
		if fault.Kind == cut {
			refusals = append(refusals, window{fault.Start, fault.End})
		}
	}
	if s := f.byName[to]; s != nil {
		for _, span := range s.line {
			if span.phase == phaseDown && span.overlaps(wide) {
				refusals = append(refusals, span.window)
			}
		}
	}
	return covers(refusals, wide)
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
// server need not do the work of the proxy. A run of the subject "none", in which no server has a
// proxy, has no such faults and is judged in full.
func (f *Facts) proxyOff(server string, w window) bool {
	return slices.ContainsFunc(f.faultList, func(fault history.Fault) bool {
		return fault.Kind == history.FaultProxyOff && fault.Server == server && (window{fault.Start, fault.End}).overlaps(w)
	})
}

// After a link to etcd is healed, a kube-apiserver stays without etcd for some more time, because
// its gRPC clients wait before they connect again.
const (
	// reconnecting is the kind of fault that represents that time.
	reconnecting = "reconnecting"
	// stuckWrite is a duration. Only on a server without a connection to etcd does a write take so
	// long.
	stuckWrite = time.Second
)

// reconnectDelay is the longest such time. A kube-apiserver has one connection to etcd per resource
// and one for /readyz. After each failed attempt gRPC waits 1.6 times as long as before (±20 %),
// from 1 s up to 2 minutes (gRPC, connection-backoff.md). So the last wait is at most nine tenths
// of the time for which attempts have failed, plus 1.2 s.
func reconnectDelay(cut time.Duration) time.Duration {
	return min(cut/10*9+1200*time.Millisecond, 144*time.Second)
}

// indexReconnects finds the servers that had no etcd after their link to it was healed: those on
// which a write was still stuck. The time of the last connection is unknown but bounded.
// indexReconnects adds a fault on the link that does not block the link, for kube-apiservers of
// every subject.
func (f *Facts) indexReconnects(h *history.History) {
	writes := map[string][]*history.Operation{}
	for i := range h.Operations {
		if o := &h.Operations[i]; needsEtcd(o) {
			writes[o.Server] = append(writes[o.Server], o)
		}
	}
	for _, server := range slices.Sorted(maps.Keys(writes)) {
		l := link{server, etcd}
		for _, fault := range f.linkFaults(l, window{beginning, forever}) {
			until := later(fault.End, reconnectDelay(fault.End-fault.Start))
			if !fault.Blocks || !slices.ContainsFunc(writes[server], func(o *history.Operation) bool {
				return min(o.End, until)-max(o.Start, fault.End) >= stuckWrite
			}) {
				continue
			}
			rest := history.Fault{ID: fault.ID, Kind: reconnecting, From: server, To: etcd, Start: fault.End, End: until}
			f.faults[l] = append(f.faults[l], rest)
			f.reconnects = append(f.reconnects, rest)
		}
		slices.SortStableFunc(f.faults[l], faultOrder)
	}
}

// needsEtcd reports whether the operation is a write that every kube-apiserver carries out itself,
// using etcd.
func needsEtcd(o *history.Operation) bool {
	local := o.GVR.Group == "" || o.GVR.Group == "coordination.k8s.io"
	return local && o.Subresource == "" && !dryRun(o) && writes(o) && o.Verb != "deletecollection"
}

const (
	// leaseLasts is the duration of an identity lease. Source: identityLeaseDurationSeconds in
	// k8s.io/kubernetes, pkg/controlplane/apiserver/server.go.
	leaseLasts = time.Hour
	// leaseRenewal is the longest time since a server's last lease renewal.
	leaseRenewal = 10 * time.Second
)

// leaseExpiries are the times in which the leases of a server may have expired, because the server
// was paused or cut off from etcd for too long to renew them. Peers may then consider the server
// gone, because only the leases show that it is alive.
func (f *Facts) leaseExpiries(name string, line timeline) []window {
	var out []window
	add := func(from, to history.Time) {
		if expires := later(from, leaseLasts-leaseRenewal); expires < to {
			out = append(out, window{expires, to})
		}
	}
	for _, s := range line {
		if s.phase == phasePaused {
			add(s.from, s.to)
		}
	}
	for _, fault := range f.faults[link{name, etcd}] {
		if !fault.Blocks {
			continue
		}
		until := fault.End
		for _, rest := range f.reconnects {
			if rest.ID == fault.ID && rest.From == name {
				until = max(until, rest.End)
			}
		}
		add(fault.Start, until)
	}
	return out
}

// without makes unknown what the server was doing in w, except for times in which its process was
// down.
func (l timeline) without(w window) timeline {
	var out timeline
	for _, s := range l {
		if !s.window.overlaps(window{w.from, w.to - 1}) {
			out = append(out, s)
			continue
		}
		before, hidden, after := s, s, s
		before.to, after.from = w.from, w.to
		hidden.from, hidden.to = max(s.from, w.from), min(s.to, w.to)
		if s.phase != phaseDown {
			hidden.phase, hidden.up = phaseUnknown, false
		}
		for _, part := range []span{before, hidden, after} {
			if part.from < part.to {
				out = append(out, part)
			}
		}
	}
	return out
}
