package invariant

import (
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// An administrator may delete the identity lease of a server. The other servers learn only from
// this lease that the server exists. So no answer of another server about that server is wrong
// until the server has written its lease again.

// withoutLease is the time in which the server whose lease the step deleted may have no lease.
func withoutLease(s history.Step) window { return window{s.Start, later(s.End, leaseRenewal)} }

// unannounced reports whether a server may have had no identity lease at any time in w, because it
// was deleted. Otherwise, since is when the server was announced again for the last time before w.
func (f *Facts) unannounced(server string, w window) (hidden bool, since history.Time) {
	since = beginning
	for _, s := range f.steps {
		if s.LeaseOf != server {
			continue
		}
		without := withoutLease(s)
		if without.overlaps(w) {
			return true, beginning
		}
		if without.to <= w.from {
			since = max(since, without.to)
		}
	}
	return false, since
}

// leaseDeletedIn reports whether an administrator deleted the identity lease of any server in w.
// After such a deletion, all servers fetch the discovery of all their peers again. They do so once
// more when the lease is written again.
func (f *Facts) leaseDeletedIn(w window) bool {
	return slices.ContainsFunc(f.steps, func(s history.Step) bool { return s.LeaseOf != "" && withoutLease(s).overlaps(w) })
}
