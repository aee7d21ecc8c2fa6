package sim

import (
	"context"
	"time"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/sim/tape"
)

var _ cluster.Administrator = (*driver)(nil)

// CompactEtcd has no effect of its own in the simulator: a simulated watch that breaks always
// begins with a list, as after a compaction.
func (d *driver) CompactEtcd(context.Context) (string, error) {
	return "simulated watches that break list again in any case", nil
}

// DefragmentEtcd does nothing in the simulator: real etcd is unavailable for milliseconds, for
// which servers wait.
func (d *driver) DefragmentEtcd(context.Context) (string, error) {
	return "simulated etcd has no file", nil
}

// GrantDiscovery says whether servers may read the discovery of their peers; see arriveFetch.
func (d *driver) GrantDiscovery(_ context.Context, granted bool) (string, error) {
	d.s.withdrawn = !granted
	return "at once", nil
}

// DeleteLease deletes the identity lease of a server. A server that can reach etcd writes the lease
// again at its next renewal, as a new holder.
func (d *driver) DeleteLease(_ context.Context, name string) (string, error) {
	s, srv := d.s, d.server(name)
	if !srv.lease.identity {
		return "there was no lease", nil
	}
	srv.lease.identity = false
	s.announce(srv)
	s.storageVersions()
	if srv.leased {
		wait := renewEvery * time.Duration(s.tape.Choose(tape.Delays, 5)) / 5
		s.loop.After(wait, srv.gate, func() {
			if srv.leased && !srv.lease.identity {
				srv.lease.identity, srv.lease.holder, srv.lease.renewed = true, srv.incarnation, s.loop.Now()
				s.announce(srv)
				s.storageVersions()
			}
		})
	}
	return "the lease was deleted", nil
}
