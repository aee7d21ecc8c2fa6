package invariant

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// regaining is the kind of the fault that indexRegained adds: nothing that the run did, but what is left of it.
const regaining = "regaining"

// vain is how long a write takes only on a server that has not got etcd back.
const vain = time.Second

// lag bounds how long after a link to etcd is whole again a kube-apiserver may still be without it. Each resource has a connection of its own there, as
// has /readyz, and gRPC waits longer after every attempt to make one anew, 1.6 times as long as before, give or take a fifth: from 1 s on to 2
// minutes (gRPC, connection-backoff.md). So after attempts for so long the last wait has not been longer than nine tenths of it, and 1.2 s.
func lag(cut time.Duration) time.Duration {
	return min(cut/10*9+1200*time.Millisecond, 144*time.Second)
}

// indexRegained finds out which servers went on without etcd when their links to it were whole again: those at which a write still waited in vain. When
// the last of its connections was made nobody can see, but it is bounded. That is the same as a fault on the link that does not block it: of
// kube-apiservers of any kind, and of no proxy.
func (f *Facts) indexRegained(h *history.History) {
	writes := map[string][]*history.Operation{}
	for i := range h.Operations {
		if o := &h.Operations[i]; needsEtcd(o) {
			writes[o.Server] = append(writes[o.Server], o)
		}
	}
	for _, server := range slices.Sorted(maps.Keys(writes)) {
		for _, fault := range f.linkFaults(link{server, etcd}, window{beginning, forever}) {
			until := later(fault.End, lag(fault.End-fault.Start))
			if !fault.Blocks || !slices.ContainsFunc(writes[server], func(o *history.Operation) bool { return min(o.End, until)-max(o.Start, fault.End) >= vain }) {
				continue
			}
			left := history.Fault{ID: fault.ID, Kind: regaining, From: server, To: etcd, Start: fault.End, End: until}
			l := link{server, etcd}
			f.faults[l] = append(f.faults[l], left)
			f.regained = append(f.regained, left)
		}
		slices.SortStableFunc(f.faults[link{server, etcd}], faultOrder)
	}
}

// needsEtcd reports whether an operation is a write that every kube-apiserver carries out by itself, with etcd.
func needsEtcd(o *history.Operation) bool {
	if o.GVR.Group != "" && o.GVR.Group != "coordination.k8s.io" || o.Subresource != "" || strings.Contains(o.Path, "dryRun") {
		return false
	}
	return o.Verb == "create" || o.Verb == "update" || o.Verb == "patch" || o.Verb == "delete"
}
