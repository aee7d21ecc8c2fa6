package sim

import (
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/peers"
	"github.com/skewproof/skewproof/sim/vtime"
)

// knowledge is how a server learns of its peers, and what it has learnt.
type knowledge struct {
	store    *proxy.Store
	schedule *peers.Schedule
	roster   *peers.Roster // of a sidecar, or for KnowledgePolicy.StaleAfter; nil takes leases as they are

	lease     lease      // its own, in etcd
	leased    bool       // it renews them
	view      []lease    // of each server, as it was told last
	delivered vtime.Time // of events: a watch keeps their order
	watch     int        // which watch it is: what an earlier one has not delivered is never delivered
	wakeAt    vtime.Time // of the schedule or the table, 0 if none is set
	rounds    int        // of fetches under way
	asked     []bool     // each peer, at least once
	firstDone bool       // informers have synced
	cutAt     vtime.Time // when it was last cut off
	cutOff    bool       // from etcd
	seeking   bool       // upstream asks etcd where a peer is, and waits for its answer
}

// begin forgets all: a new process knows nothing.
func (srv *server) begin() {
	k := &srv.knowledge
	*k = knowledge{lease: k.lease, view: k.view[:0], asked: k.asked[:0]}
	for range srv.s.servers {
		k.view = append(k.view, lease{})
		k.asked = append(k.asked, false)
	}
	srv.newHandler()
	if stale := srv.policy.Knowledge.StaleAfter; srv.sidecar() || srv.on && stale > 0 {
		k.roster = peers.NewRoster(peers.RosterConfig{Self: srv.id, StaleAfter: stale, Direct: srv.direct()})
	}
}

// announce tells every server that watches etcd what the leases of one server are now.
func (s *Simulator) announce(about *server) {
	about.refresh()
	now := about.lease
	for _, srv := range s.servers {
		if srv == about || !srv.on || srv.phase == down || srv.cutOff || !srv.firstDone {
			continue
		}
		srv.notify(func() { srv.told(about, now) })
	}
}

// notify delivers an event of etcd to the server, in order, unless its watch breaks before.
func (srv *server) notify(do func()) {
	s := srv.s
	srv.delivered = max(srv.delivered, s.loop.Now()+s.delay(s.link(srv.index, s.etcdEnd()), fault.Down, 100))
	watch := srv.watch
	s.loop.At(srv.delivered, srv.gate, func() {
		if srv.watch == watch {
			do()
		}
	})
}

// relist is what an informer does when its watch begins, or begins again: it is told everything.
func (srv *server) relist() {
	if !srv.on {
		return
	}
	first := !srv.firstDone
	srv.firstDone = true
	srv.watch++
	for _, about := range srv.s.servers {
		if about != srv {
			about.refresh()
			srv.told(about, about.lease)
		}
	}
	if !first {
		srv.watchResumed()
		return
	}
	if !srv.policy.Knowledge.WaitForPeers {
		srv.store.Observe(proxy.Synced{})
	}
	srv.pump()
}

// told takes in the leases of a peer.
func (srv *server) told(about *server, now lease) {
	if srv.phase == down {
		return
	}
	srv.s.trace.add(srv.s.loop.Now(), eventLease, srv.index, about.index, uint64(now.holder)<<2|bit(now.identity)<<1|bit(now.endpoint))
	was := srv.view[about.index]
	srv.view[about.index] = now
	var events []proxy.Event
	switch {
	case srv.sidecar():
		events = srv.enrol(about, was, now)
	case srv.roster != nil:
		events = append(addressEvents(about, was, now), srv.enrol(about, was, now)...)
	default:
		events = identityEvents(addressEvents(about, was, now), about, was, now)
	}
	srv.observe(events...)
}

// addressEvents is what a kube-apiserver learns of a peer's address. A real one looks addresses up
// when it needs them, which has the same effect.
func addressEvents(about *server, was, now lease) []proxy.Event {
	switch {
	case was.endpoint == now.endpoint && was.address == now.address:
		return nil
	case now.endpoint:
		return []proxy.Event{proxy.PeerAddress{ID: about.id, Address: now.address}}
	}
	return []proxy.Event{proxy.PeerAddress{ID: about.id}}
}

// identityEvents adds what a kube-apiserver learns of a peer's identity lease: each is a live
// server.
func identityEvents(events []proxy.Event, about *server, was, now lease) []proxy.Event {
	switch {
	case now.identity && (!was.identity || was.holder != now.holder):
		return append(events, proxy.PeerAppeared{ID: about.id, Incarnation: itoa(now.holder)})
	case was.identity && !now.identity:
		return append(events, proxy.PeerGone{ID: about.id})
	}
	return events
}

// observe tells the table, and then the schedule, as the sidecar's sources do.
func (srv *server) observe(events ...proxy.Event) {
	if len(events) == 0 || !srv.on {
		return
	}
	events = srv.s.setup.events(srv, events)
	srv.store.Observe(events...)
	now := srv.s.wall()
	for _, e := range events {
		srv.schedule.Learn(e, now)
		if gone, ok := e.(proxy.PeerGone); ok {
			srv.asked[srv.s.byID[gone.ID]] = false
		}
	}
	srv.pump()
}
