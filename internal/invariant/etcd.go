package invariant

import (
	"maps"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// After a link to etcd is healed, a kube-apiserver is without etcd for some time more: its gRPC
// clients wait before they connect again.
const (
	// reconnecting is the kind of the fault that stands for that time.
	reconnecting = "reconnecting"
	// stuckWrite is how long a write takes only on a server that has no connection to etcd.
	stuckWrite = time.Second
)

// reconnectDelay bounds that time. A kube-apiserver has one connection to etcd per resource and one
// for /readyz. gRPC waits longer after each failed attempt, 1.6 times as long as before ±20 %, from
// 1 s up to 2 minutes (gRPC, connection-backoff.md). So the last wait is at most nine tenths of the
// time for which attempts have failed, plus 1.2 s.
func reconnectDelay(cut time.Duration) time.Duration {
	return min(cut/10*9+1200*time.Millisecond, 144*time.Second)
}

// indexReconnects finds the servers that were without etcd after their link to it was healed: those
// on which a write was still stuck. When the last connection was made is unknown but bounded. It
// adds a fault on the link that does not block it, for kube-apiservers of every subject.
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
// with etcd.
func needsEtcd(o *history.Operation) bool {
	local := o.GVR.Group == "" || o.GVR.Group == "coordination.k8s.io"
	return local && o.Subresource == "" && !dryRun(o) && writes(o) && o.Verb != "deletecollection"
}

const (
	// leaseLasts is the duration of an identity lease. Source: identityLeaseDurationSeconds in
	// k8s.io/kubernetes, pkg/controlplane/apiserver/server.go.
	leaseLasts = time.Hour
	// leaseRenewal is how long ago a server may have renewed its lease last.
	leaseRenewal = 10 * time.Second
)

// leaseExpiries are the times in which the leases of a server may have expired, because it was
// paused or cut off from etcd for too long to renew them. Its peers may take it for gone then,
// since nothing but the leases shows that it lives.
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

// without makes unknown what the server was doing in w, except that its process was down.
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
