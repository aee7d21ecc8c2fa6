package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim/tape"
	"github.com/skewproof/skewproof/sim/vtime"
)

// snapshot is a control plane that is up and idle, and that was started with a tape of zeros. A
// snapshot is cheap to restore, because the state of servers is immutable or small.
type snapshot struct {
	at        vtime.Time
	servers   []server
	warm      []bool // links
	lifecycle []history.Lifecycle
	served    []history.Served
	flags     []history.Configuration
	leases    []history.Lease
	documents map[string]history.Document
}

// settledAfter is the idle time after which a control plane is settled. It is longer than the
// staleness bound.
const settledAfter = 8 * time.Second

// settle restores a settled control plane. If it must call bringUp first, it then calls prepare
// again, because bringUp uses the same simulator.
func (s *Simulator) settle(c *Case, t *tape.Tape, o Options) error {
	var key strings.Builder
	for _, srv := range c.Servers {
		key.WriteString(srv.Name + "=" + srv.Version + ",")
	}
	snap := s.snapshots[key.String()]
	if snap == nil {
		var err error
		if snap, err = s.bringUp(c); err != nil {
			return err
		}
		if len(s.snapshots) >= maxSnapshots {
			clear(s.snapshots)
		}
		s.snapshots[key.String()] = snap
		if err := s.prepare(c, t, o); err != nil {
			return err
		}
	}
	s.restore(snap)
	return nil
}

// maxSnapshots is the maximum number of combinations of versions that are remembered.
const maxSnapshots = 256

// maxBringUp is the time after which a control plane is used as it is. Some servers may never
// become ready.
const maxBringUp = 2 * time.Minute

// bringUp starts the servers of a case and waits until they are idle.
func (s *Simulator) bringUp(c *Case) (*snapshot, error) {
	if err := s.prepare(c, &tape.Tape{}, Options{}); err != nil {
		return nil, err
	}
	if err := s.startAll(c); err != nil {
		return nil, err
	}
	until := vtime.Time(0)
	s.loop.RunWhile(func() bool {
		up := !slices.ContainsFunc(s.servers, func(srv *server) bool { return srv.phase != running })
		if up && until == 0 {
			until = s.loop.Now() + settledAfter
		}
		busy := slices.ContainsFunc(s.servers, func(srv *server) bool { return srv.rounds > 0 })
		return s.loop.Now() < maxBringUp && (!up || s.loop.Now() < until || busy)
	})
	snap := &snapshot{
		at: s.loop.Now(), lifecycle: s.history.Lifecycle, served: s.history.Served, flags: s.history.Configurations, leases: s.history.Leases,
		documents: s.history.Documents,
	}
	for _, srv := range s.servers {
		srv.refresh()
		saved := *srv
		saved.view, saved.asked = slices.Clone(srv.view), slices.Clone(srv.asked)
		snap.servers = append(snap.servers, saved)
	}
	for i := range s.links {
		snap.warm = append(snap.warm, s.links[i].warm)
	}
	s.loop.Reset()
	return snap, nil
}

// restore restores the state of a snapshot.
func (s *Simulator) restore(snap *snapshot) {
	s.loop.Skip(snap.at)
	h := s.history
	h.Lifecycle = append(h.Lifecycle, snap.lifecycle...)
	h.Served = append(h.Served, snap.served...)
	h.Configurations = append(h.Configurations, snap.flags...)
	h.Leases = append(h.Leases, snap.leases...)
	maps.Copy(h.Documents, snap.documents)
	for i := range s.links {
		s.links[i].warm = snap.warm[i]
	}
	for i, srv := range s.servers {
		saved := &snap.servers[i]
		view, asked, incoming := append(srv.view[:0], saved.view...), append(srv.asked[:0], saved.asked...), srv.incoming[:0]
		counted := srv.rerouted[:0] // nobody asked for anything before the snapshot
		*srv = *saved
		srv.view, srv.asked, srv.incoming, srv.rerouted = view, asked, incoming, counted
		srv.gate = &vtime.Gate{}
		srv.wakeAt = 0
		if !srv.on {
			srv.handler = s.setup.local(srv)
			continue
		}
		srv.store = proxy.StoreOf(saved.store.Table())
		srv.schedule = saved.schedule.Clone(s.jitter, s.wall())
		if saved.roster != nil {
			srv.roster = saved.roster.Clone()
			srv.finding = false
			srv.find()
		}
		srv.makeHandler()
		srv.pump()
	}
}
