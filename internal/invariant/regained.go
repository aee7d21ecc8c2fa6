package invariant

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// regaining is the kind of the fault that indexRegained adds: nothing that the run did, but what is left of it.
const regaining = "regaining"

// vain is how long a write of a lease takes, or waits for nothing, only on a server that has not got etcd back.
const vain = time.Second

// lag bounds how long after a link to etcd is whole again a kube-apiserver may still be without it. Each resource has a connection of its own there, and
// gRPC waits longer after every attempt to make it anew, 1.6 times as long as before, give or take a fifth: from 1 s on to 2 minutes
// (gRPC, connection-backoff.md). So after attempts for so long the last wait has not been longer than nine tenths of it, and 1.2 s.
func lag(cut time.Duration) time.Duration {
	return min(cut/10*9+1200*time.Millisecond, 144*time.Second)
}

// indexRegained finds out how long servers went on without etcd after their links to it were whole again: as long as what they were asked to write
// of leases, by which they know each other, waited in vain. That is the same as a fault on the link that does not block it: of kube-apiservers of
// any kind, and of no proxy.
func (f *Facts) indexRegained(h *history.History) {
	writes := map[string][]*history.Operation{}
	for i := range h.Operations {
		if o := &h.Operations[i]; writesLease(o) {
			writes[o.Server] = append(writes[o.Server], o)
		}
	}
	for _, server := range slices.Sorted(maps.Keys(writes)) {
		for _, fault := range f.linkFaults(link{server, etcd}, window{beginning, forever}) {
			if !fault.Blocks {
				continue
			}
			if at := regained(writes[server], fault); at > fault.End {
				left := history.Fault{ID: fault.ID, Kind: regaining, From: server, To: etcd, Start: fault.End, End: at}
				l := link{server, etcd}
				f.faults[l] = append(f.faults[l], left)
				f.regained = append(f.regained, left)
			}
		}
		slices.SortStableFunc(f.faults[link{server, etcd}], faultOrder)
	}
}

// writesLease reports whether an operation can come to its end only with etcd: an attempt to change a lease, by somebody who may.
func writesLease(o *history.Operation) bool {
	if o.GVR.Group != "coordination.k8s.io" || o.GVR.Resource != "leases" || o.Subresource != "" || strings.Contains(o.Path, "dryRun") {
		return false
	}
	return o.Verb == "create" || o.Verb == "update" || o.Verb == "patch" || o.Verb == "delete"
}

// regained is when the first write after a fault came to its end, if one had waited in vain until then; otherwise the end of the fault.
func regained(writes []*history.Operation, fault history.Fault) history.Time {
	latest := later(fault.End, lag(time.Duration(fault.End-fault.Start)))
	at := latest
	for _, o := range writes {
		done := o.Status == http.StatusOK || o.Status == http.StatusCreated || o.Status == http.StatusNotFound || o.Status == http.StatusConflict
		if done && o.End > fault.End {
			at = min(at, o.End)
		}
	}
	waited := slices.ContainsFunc(writes, func(o *history.Operation) bool {
		return time.Duration(min(o.End, at)-max(o.Start, fault.End)) >= vain
	})
	if !waited {
		return fault.End
	}
	return at
}
