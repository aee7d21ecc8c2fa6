package invariant

import (
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// An administrator may delete the identity lease of a server. It is the only sign by which the
// others know that the server is there, so until the server has written it again, no answer of
// another server about it is wrong.

// withoutLease is the time in which the server whose lease the step deleted may have none.
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

// leaseDeletedIn reports whether an administrator deleted the identity lease of any server in w. All
// servers then ask all their peers for their discovery again, and once more when the lease is
// written again.
func (f *Facts) leaseDeletedIn(w window) bool {
	return slices.ContainsFunc(f.steps, func(s history.Step) bool { return s.LeaseOf != "" && withoutLease(s).overlaps(w) })
}
