package sim

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim/tape"
	"github.com/skewproof/skewproof/sim/vtime"
)

// Times of identity leases and of endpoint leases, which are keys in etcd (kubernetes,
// pkg/controlplane/apiserver), and of the reference (proxy/peers).
const (
	endpointTTL   = 15 * time.Second
	renewEvery    = 10 * time.Second
	beatEvery     = 5 * time.Second  // how often the reference renews its endpoint lease
	findEvery     = time.Second      // how often the reference searches for servers without an endpoint lease
	watchStalls   = 20 * time.Second // without an event for this long, a server treats its lease watch as stalled (proxy/peers)
	watchGap      = 12 * time.Second // after this long without an event, a server asks every peer again
	identityLasts = time.Hour
)

// lease is the content of etcd about one server: its identity lease and its endpoint lease.
type lease struct {
	identity bool
	holder   int // the incarnation that wrote the identity lease
	renewed  vtime.Time

	endpoint  bool
	published int    // the incarnation that wrote the endpoint lease
	address   string // of the server, in the endpoint lease
	beaten    vtime.Time
	marked    bool // the reference's mark, which outlasts its endpoint lease
}

// removesLease reports whether this version removes its identity lease when it starts and when it
// stops (from 1.35).
func (srv *server) removesLease() bool { return minorOf(srv.release) >= 35 }

// takeIdentity writes the identity lease of a starting process.
func (srv *server) takeIdentity() {
	if srv.lease.identity && srv.removesLease() {
		srv.lease.identity = false
		srv.s.announce(srv)
	}
	// Up to 1.34 the lease controller names the holder only when it creates the lease
	// (component-helpers, apimachinery/lease), so that peers do not notice that a server was
	// restarted.
	if !srv.lease.identity {
		srv.lease.holder = srv.incarnation
	}
	srv.lease.identity, srv.lease.renewed = true, srv.s.loop.Now()
	srv.leased = true
	srv.s.announce(srv)
}

// publish writes the endpoint lease of a server that is ready.
func (srv *server) publish() {
	if srv.does.Proxy == history.ProxyOff {
		return
	}
	srv.lease.address = srv.advertises()
	srv.lease.endpoint, srv.lease.published, srv.lease.beaten = true, srv.incarnation, srv.s.loop.Now()
	srv.lease.marked = srv.lease.marked || srv.reference()
	if srv.sighting != 0 {
		srv.sight()
	}
	srv.s.announce(srv)
	srv.s.storageVersions()
}

// refresh adds the renewals since the last call to the times of a lease. They are not simulated one
// by one.
func (srv *server) refresh() {
	if !srv.leased {
		return
	}
	now := srv.s.loop.Now()
	srv.lease.renewed += (now - srv.lease.renewed) / renewEvery * renewEvery
	if srv.lease.published == srv.incarnation {
		srv.lease.beaten += (now - srv.lease.beaten) / beatEvery * beatEvery
	}
}

// leave removes the leases of a process that ends gracefully.
func (srv *server) leave() {
	if srv.s.link(srv.index, srv.s.etcdEnd()).blocked() {
		srv.silence()
		return
	}
	srv.refresh()
	srv.leased = false
	srv.lease.endpoint, srv.lease.marked = false, srv.lease.marked && !srv.reference()
	if srv.removesLease() {
		srv.lease.identity = false
	}
	srv.s.announce(srv)
	srv.s.storageVersions()
}

// silence makes a server stop renewing its leases because it is killed, paused or cut off from
// etcd.
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
			renewed := srv.leased && srv.lease.published == srv.incarnation
			if !renewed && srv.lease.published == until.published && srv.lease.endpoint {
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

// lapsed is called when an endpoint lease has expired, and so disappears.
func (srv *server) lapsed() {
	srv.lease.endpoint = false
	if srv.sighting != 0 {
		srv.sight()
	}
	srv.s.announce(srv)
}

// etcdChanged is called when the link of a server to etcd may have been cut or healed, or when the
// process runs again.
func (s *Simulator) etcdChanged(srv *server) {
	cut := s.link(srv.index, s.etcdEnd()).blocked()
	switch {
	case cut && !srv.cutOff:
		srv.cutOff = true
		srv.cutAt = s.loop.Now()
		srv.watch++
		s.link(srv.index, s.etcdEnd()).countAffected()
		srv.silence()
		srv.noticeStall()
		srv.seeking = !srv.reference()
	case !cut && srv.cutOff:
		srv.cutOff = false
		s.loop.After(s.latency()+time.Second*time.Duration(s.tape.Choose(tape.Delays, 3))/2, srv.gate, func() {
			if !srv.cutOff && srv.phase != down {
				srv.relist()
				srv.see(s.extensions)
				srv.seeking = false
				for _, x := range srv.incoming {
					x.wake()
				}
			}
		})
	}
	if srv.phase == running && srv.gate.Open() && !cut && !srv.leased {
		wait := time.Second * time.Duration(s.tape.Choose(tape.Delays, 4))
		s.loop.After(wait, srv.gate, func() {
			if srv.phase == running && !srv.leased && !s.link(srv.index, s.etcdEnd()).blocked() {
				if !srv.lease.identity {
					srv.lease.holder = srv.incarnation
				}
				srv.leased, srv.lease.identity, srv.lease.renewed = true, true, s.loop.Now()
				srv.publish()
			}
		})
	}
}

// storageVersions tells servers of the alpha design the content of the StorageVersion objects.
// Every ready server has written its objects, which are deleted with its lease.
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
