package sim

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/peers"
	"github.com/skewproof/skewproof/sim/tape"
	"github.com/skewproof/skewproof/sim/vtime"
)

// The times of leases: of identity leases and peer endpoint leases of kube-apiserver (kubernetes, pkg/controlplane/apiserver), and of the
// endpoint leases of this repository's sidecar.
const (
	endpointTTL   = 15 * time.Second
	renewEvery    = 10 * time.Second
	beatEvery     = 5 * time.Second // of the sidecar's endpoint lease
	deafAfter     = 20 * time.Second
	identityLasts = time.Hour
)

// lease is what etcd has of one server: its identity lease and its endpoint lease.
type lease struct {
	identity bool
	holder   int // the incarnation that wrote the identity lease
	renewed  vtime.Time

	endpoint  bool
	published int // the incarnation that wrote the endpoint lease
	beaten    vtime.Time
}

// knowledge is how a server learns of its peers, and what it has learnt.
type knowledge struct {
	store    *proxy.Store
	schedule *peers.Schedule
	roster   *peers.Roster // of a policy that doubts; upstream takes leases as they are

	lease     lease      // its own, in etcd
	leased    bool       // it renews them
	view      []lease    // of each server, as it was told last
	delivered vtime.Time // of events: a watch keeps their order
	wakeAt    vtime.Time // of the schedule or the table, 0 if none is set
	rounds    int
	asked     []bool // each peer, at least once
	firstDone bool   // informers have synced
	cutOff    bool   // from etcd
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
	if srv.on && srv.policy.Knowledge.DoubtUnknown {
		k.roster = peers.NewRoster(peers.RosterConfig{Self: srv.id})
	}
}

// removesLease reports whether this version removes its identity lease when it starts and when it stops (from 1.35).
func (srv *server) removesLease() bool { return minorOf(srv.version.Name) >= 35 }

// takeIdentity writes the identity lease of a starting process.
func (srv *server) takeIdentity() {
	if srv.lease.identity && srv.removesLease() {
		srv.lease.identity = false
		srv.s.announce(srv)
	}
	srv.lease.identity, srv.lease.holder, srv.lease.renewed = true, srv.incarnation, srv.s.loop.Now()
	srv.leased = true
	srv.s.announce(srv)
}

// publish writes the endpoint lease of a server that is ready.
func (srv *server) publish() {
	srv.lease.endpoint, srv.lease.published, srv.lease.beaten = true, srv.incarnation, srv.s.loop.Now()
	srv.s.announce(srv)
	srv.s.storageVersions()
}

// refresh brings a lease up to date that was renewed all the time: that is not carried out as long as it makes no difference.
func (srv *server) refresh() {
	if !srv.leased {
		return
	}
	now := srv.s.loop.Now()
	srv.lease.renewed += (now - srv.lease.renewed) / renewEvery * renewEvery
	srv.lease.beaten += (now - srv.lease.beaten) / beatEvery * beatEvery
}

// leave removes the leases of a process that ends gracefully.
func (srv *server) leave() {
	if srv.s.link(srv.index, srv.s.etcdEnd()).blocked() {
		srv.silence()
		return
	}
	srv.leased = false
	srv.lease.endpoint = false
	if srv.removesLease() {
		srv.lease.identity = false
	}
	srv.s.announce(srv)
	srv.s.storageVersions()
}

// silence is what a server that is killed, paused or cut off from etcd does: it renews no lease. They were renewed some time ago.
func (srv *server) silence() {
	if !srv.leased {
		return
	}
	s := srv.s
	srv.refresh()
	srv.leased = false
	if srv.lease.endpoint {
		age := min(s.loop.Now()-srv.lease.beaten, renewEvery*time.Duration(s.tape.Choose(tape.Delays, 5))/5)
		srv.lease.beaten = s.loop.Now() - age
		until := srv.lease
		s.loop.At(srv.lease.beaten+endpointTTL, nil, func() {
			if !srv.leased && srv.lease.published == until.published && srv.lease.endpoint {
				srv.lapsed()
			}
		})
	}
	held := srv.lease.holder
	s.loop.At(srv.lease.renewed+identityLasts, nil, func() {
		if !srv.leased && srv.lease.identity && srv.lease.holder == held {
			srv.lease.identity = false // the hourly garbage collection
			s.announce(srv)
		}
	})
	s.beat()
}

// lapsed is when an endpoint lease in etcd has expired: kube-apiserver's are gone by themselves then, the sidecar's remain and are old.
func (srv *server) lapsed() {
	for _, other := range srv.s.servers {
		if other.on && other.roster == nil {
			srv.lease.endpoint = false
			srv.s.announce(srv)
			return
		}
	}
}

// etcdChanged is called when a server may have lost or found its way to etcd, or has come back to life.
func (s *Simulator) etcdChanged(srv *server) {
	cut := s.link(srv.index, s.etcdEnd()).blocked()
	switch {
	case cut && !srv.cutOff:
		srv.cutOff = true
		s.link(srv.index, s.etcdEnd()).bite()
		srv.silence()
		srv.deafen()
		if srv.roster == nil {
			srv.forgetAddresses()
		}
	case !cut && srv.cutOff:
		srv.cutOff = false
		s.loop.After(s.latency()+time.Second*time.Duration(s.tape.Choose(tape.Delays, 3))/2, srv.gate, func() {
			if !srv.cutOff && srv.phase != down {
				srv.relist()
				srv.see(s.extensions)
			}
		})
	}
	if srv.phase == running && srv.gate.Open() && !cut && !srv.leased {
		wait := time.Second * time.Duration(s.tape.Choose(tape.Delays, 4))
		s.loop.After(wait, srv.gate, func() {
			if srv.phase == running && !srv.leased && !s.link(srv.index, s.etcdEnd()).blocked() {
				srv.leased = true
				srv.lease.identity, srv.lease.holder, srv.lease.renewed = true, srv.incarnation, s.loop.Now()
				srv.publish()
			}
		})
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
		l := s.link(srv.index, s.etcdEnd())
		at := max(srv.delivered, s.loop.Now()+s.delay(l, fault.Down, 100))
		srv.delivered = at
		s.loop.At(at, srv.gate, func() { srv.told(about, now) })
	}
}

// relist is what an informer does when its watch begins, or begins again: it is told everything, what it knew already included.
func (srv *server) relist() {
	if !srv.on {
		return
	}
	first := !srv.firstDone
	srv.firstDone = true
	for _, about := range srv.s.servers {
		if about != srv {
			about.refresh()
			srv.told(about, about.lease)
		}
	}
	if !first {
		srv.heardAgain()
		return
	}
	if srv.roster == nil {
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
	if srv.roster != nil {
		events = srv.enrol(about, was, now)
	} else {
		events = upstreamEvents(about, was, now)
	}
	srv.observe(events...)
}

// enrol feeds the roster.
func (srv *server) enrol(about *server, was, now lease) []proxy.Event {
	at := srv.s.wall()
	if now.identity {
		srv.roster.Identity(peers.IdentityLease{ID: about.id, Holder: itoa(now.holder), Renewed: srv.s.at(now.renewed)}, at)
	} else if was.identity {
		srv.roster.IdentityGone(about.id, at)
	}
	if now.endpoint {
		srv.roster.Endpoint(peers.EndpointLease{
			ID: about.id, Holder: itoa(now.published), Renewed: srv.s.at(now.beaten), Address: about.address, Duration: endpointTTL,
		}, at)
	} else if was.endpoint {
		srv.roster.EndpointGone(about.id, at)
	}
	return srv.roster.Changes()
}

// upstreamEvents is what kube-apiserver makes of leases: every identity lease is a live server, and addresses are looked up when they are
// needed, which is as good as knowing them at once.
func upstreamEvents(about *server, was, now lease) []proxy.Event {
	var events []proxy.Event
	if was.endpoint != now.endpoint {
		address := ""
		if now.endpoint {
			address = about.address
		}
		events = append(events, proxy.PeerAddress{ID: about.id, Address: address})
	}
	switch {
	case now.identity && (!was.identity || was.holder != now.holder):
		events = append(events, proxy.PeerAppeared{ID: about.id, Incarnation: itoa(now.holder)})
	case was.identity && !now.identity:
		events = append(events, proxy.PeerGone{ID: about.id})
	}
	return events
}

// forgetAddresses is upstream without etcd: it cannot look any address up.
func (srv *server) forgetAddresses() {
	for _, about := range srv.s.servers {
		if about != srv && srv.on && srv.store != nil && srv.view[about.index].endpoint {
			srv.view[about.index].endpoint = false
			srv.observe(proxy.PeerAddress{ID: about.id})
		}
	}
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
		switch e := e.(type) {
		case proxy.PeerAppeared:
			srv.schedule.Lease(e.ID, now)
		case proxy.PeerAddress:
			if e.Address != "" {
				srv.schedule.Address(e.ID, now)
			}
		case proxy.PeerGone:
			srv.schedule.Gone(e.ID, now)
			srv.asked[srv.s.byID[e.ID]] = false
		case proxy.Extensions:
			srv.schedule.Changed(now)
		}
	}
	srv.pump()
}

// beat renews, for rosters, the leases of every server that renews them, as long as some server does not: only then does it matter who is heard.
func (s *Simulator) beat() {
	if s.beating {
		return
	}
	s.beating = true
	s.loop.After(beatEvery, nil, s.onBeat)
}

func (s *Simulator) onBeat() {
	s.beating = false
	silent, rosters := false, false
	for _, about := range s.servers {
		rosters = rosters || about.roster != nil
		if !about.leased {
			silent = true
			continue
		}
		about.lease.renewed, about.lease.beaten = s.loop.Now(), s.loop.Now()
	}
	if !rosters {
		return
	}
	for _, srv := range s.servers {
		if srv.roster == nil || srv.phase == down || srv.cutOff || !srv.firstDone {
			continue
		}
		s.loop.After(s.latency(), srv.gate, func() {
			for _, about := range s.servers {
				if about != srv && about.leased {
					srv.told(about, about.lease)
				}
			}
			srv.hear()
		})
	}
	if silent {
		s.beat()
	}
}

// hear lets the roster notice who was not heard.
func (srv *server) hear() {
	if srv.leased { // its own lease proves that the watch works
		srv.roster.Identity(peers.IdentityLease{ID: srv.id, Holder: itoa(srv.lease.holder), Renewed: srv.s.at(srv.lease.renewed)}, srv.s.wall())
	}
	srv.observe(srv.roster.Changes()...)
}

// deafen makes the sidecar say that it hears nothing, if that lasts.
func (srv *server) deafen() {
	if srv.roster == nil {
		return
	}
	srv.s.loop.After(deafAfter, srv.gate, func() {
		if srv.cutOff {
			srv.s.reached.note(ReachedDeaf)
			srv.observe(proxy.Deaf{Is: true})
		}
	})
}

func (srv *server) heardAgain() {
	if srv.roster != nil {
		srv.observe(proxy.Deaf{Is: false})
	}
}

// storageVersions tells, for the alpha generation, what the StorageVersion objects say: every server that is ready has written what it
// serves, and what a server wrote goes with its lease.
func (s *Simulator) storageVersions() {
	var e *proxy.StorageVersions
	for _, srv := range s.servers {
		if !srv.on || !srv.policy.Knowledge.StorageVersions || srv.phase == down || srv.cutOff {
			continue
		}
		if e == nil {
			e = s.storageVersionObjects()
		}
		s.loop.After(s.latency(), srv.gate, func() { srv.store.Observe(*e) })
	}
}
