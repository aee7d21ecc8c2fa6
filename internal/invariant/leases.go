package invariant

import (
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// An administrator may delete the identity lease of a server. The other servers learn only from
// this lease that the server exists. So no answer of another server about that server is wrong
// until the server has written its lease again.

// unleased is the time in which a server may have no lease, because it was deleted.
type unleased struct {
	server string
	window
}

// indexLeases also finds when servers could not read the discovery of their peers. It needs the
// steps in the order of their time.
func (f *Facts) indexLeases() {
	for i := range f.steps {
		s := &f.steps[i]
		if s.LeaseOf != "" {
			f.unleased = append(f.unleased, unleased{s.LeaseOf, window{s.Start, later(s.End, leaseRenewal)}})
		}
		switch n := len(f.withdrawn); s.Discovery {
		case history.DiscoveryWithdrawn:
			f.withdrawn = append(f.withdrawn, window{s.Start, forever})
		case history.DiscoveryGranted:
			if n > 0 {
				f.withdrawn[n-1].to = s.End
			}
		}
	}
}

// withoutDiscovery says in a signature that servers could not read the discovery of their peers.
const withoutDiscovery = "servers: could not read discovery"

// withdrawnIn reports whether servers could not read the discovery of their peers at any time in w.
func (f *Facts) withdrawnIn(w window) bool { return slices.ContainsFunc(f.withdrawn, w.overlaps) }

// unannounced reports whether a server may have had no identity lease at any time in w, because it
// was deleted. Otherwise, since is when the server was announced again for the last time before w.
func (f *Facts) unannounced(server string, w window) (hidden bool, since history.Time) {
	since = beginning
	for _, without := range f.unleased {
		if without.server != server {
			continue
		}
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
	return slices.ContainsFunc(f.unleased, func(u unleased) bool { return u.overlaps(w) })
}
