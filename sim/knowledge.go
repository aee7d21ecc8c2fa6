package sim

import (
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/peers"
	"github.com/skewproof/skewproof/sim/vtime"
)

// knowledge is the state of a server's sources about its peers, and what it has learnt from them.
type knowledge struct {
	store    *proxy.Store
	schedule *peers.Schedule
	roster   *peers.Roster // of the reference, or for KnowledgePolicy.StaleAfter; without one (nil), leases are used as they are

	found   map[proxy.ServerID]string // the addresses of servers without a key; never changed
	finding bool                      // a search for such servers is due

	lease     lease      // its own, in etcd
	leased    bool       // the server renews it
	view      []lease    // the lease of each server, as last reported to this server
	delivered vtime.Time // when the last event is delivered: a watch keeps the order of events
	watch     int        // number of the watch: undelivered events of an earlier watch are never delivered
	wakeAt    vtime.Time // the next timer of the schedule or the table; 0 if none is set
	rounds    int        // number of rounds of fetches in progress
	asked     []bool     // each peer was asked at least once
	firstDone bool       // informers have synced
	cutAt     vtime.Time // when it was last cut off
	cutOff    bool       // from etcd
	seeking   bool       // upstream waits for etcd, which it asks for the address of a peer
}

// begin forgets everything, because a new process knows nothing.
func (srv *server) begin() {
	k := &srv.knowledge
	*k = knowledge{lease: k.lease, view: k.view[:0], asked: k.asked[:0]}
	for range srv.s.servers {
		k.view = append(k.view, lease{})
		k.asked = append(k.asked, false)
	}
	srv.newHandler()
	if stale := srv.policy.Knowledge.StaleAfter; srv.reference() || srv.on && stale > 0 {
		k.roster = peers.NewRoster(peers.RosterConfig{Self: srv.id, StaleAfter: stale, Leaving: srv.policy.Knowledge.Leaving})
	}
}

// announce tells every server that watches etcd the present leases of one server.
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

// relist starts a watch, or starts it again: the server is told everything, like an informer that
// lists.
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

// told processes the leases of a peer.
func (srv *server) told(about *server, now lease) {
	if srv.phase == down {
		return
	}
	srv.s.trace.add(srv.s.loop.Now(), eventLease, srv.index, about.index, uint64(now.holder)<<2|bit(now.identity)<<1|bit(now.endpoint))
	was := srv.view[about.index]
	srv.view[about.index] = now
	var events []proxy.Event
	if srv.roster != nil {
		events = srv.enrol(about, was, now)
	} else {
		events = identityEvents(addressEvents(about, was, now), about, was, now)
	}
	srv.observe(events...)
}

// addressEvents returns the events about a peer's address. A real kube-apiserver looks up the
// address when it needs it, which has the same effect.
func addressEvents(about *server, was, now lease) []proxy.Event {
	switch {
	case was.endpoint == now.endpoint && was.address == now.address:
		return nil
	case now.endpoint:
		return []proxy.Event{proxy.PeerAddress{ID: about.id, Address: now.address}}
	}
	return []proxy.Event{proxy.PeerAddress{ID: about.id}}
}

// identityEvents adds the events about a peer's identity lease. Each such lease is a live server.
func identityEvents(events []proxy.Event, about *server, was, now lease) []proxy.Event {
	switch {
	case now.identity && (!was.identity || was.holder != now.holder):
		return append(events, proxy.PeerAppeared{ID: about.id, Incarnation: itoa(now.holder)})
	case was.identity && !now.identity:
		return append(events, proxy.PeerGone{ID: about.id})
	}
	return events
}

// observe tells the table and then the schedule, in the order of the sources in proxy/peers.
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
