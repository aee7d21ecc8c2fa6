package sim

import (
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/peers"
)

// enrol passes the leases of a server on to the roster. Only the reference reads endpoint leases.
func (srv *server) enrol(about *server, was, now lease) []proxy.Event {
	at := srv.s.wall()
	srv.catchUp(about)
	if now.identity {
		srv.hearIdentity(about, now)
	} else if was.identity {
		srv.roster.IdentityGone(about.id, at)
	}
	switch {
	case !srv.reference():
	case now.endpoint:
		srv.hearEndpoint(about, now)
	case was.endpoint:
		srv.roster.EndpointGone(about.id, at)
	}
	return srv.roster.Changes()
}

// catchUp tells the roster the renewals of all other servers that were not simulated. The roster
// measures time by the leases that it sees, so without this it would believe that these servers are
// gone.
func (srv *server) catchUp(but *server) {
	for i, about := range srv.s.servers {
		switch was := &srv.view[i]; {
		case about == but || !about.leased:
		case about == srv:
			srv.hearIdentity(srv, srv.lease)
		default:
			about.refresh()
			if was.identity && about.lease.identity && was.holder == about.lease.holder {
				was.renewed = about.lease.renewed
				srv.hearIdentity(about, *was)
			}
			if srv.reference() && was.endpoint && about.lease.endpoint && was.published == about.lease.published {
				was.beaten = about.lease.beaten
				srv.hearEndpoint(about, *was)
			}
		}
	}
}

// hearIdentity passes the identity lease of a server on to the roster.
func (srv *server) hearIdentity(about *server, l lease) {
	srv.roster.Identity(peers.IdentityLease{ID: about.id, Holder: itoa(l.holder), Renewed: srv.s.at(l.renewed)}, srv.s.wall())
}

// hearEndpoint passes the endpoint lease of a server on to the roster.
func (srv *server) hearEndpoint(about *server, l lease) {
	srv.roster.Endpoint(peers.EndpointLease{
		ID: about.id, Holder: itoa(l.published), Renewed: srv.s.at(l.beaten), Address: l.address, Duration: endpointTTL, Serves: l.serves,
	}, srv.s.wall())
}

// beat simulates renewals for rosters while some server does not renew its leases. Otherwise
// renewals make no difference.
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

// hear lets the roster detect the servers whose leases are not renewed.
func (srv *server) hear() {
	if srv.leased { // its own lease proves that its watch works
		srv.hearIdentity(srv, srv.lease)
	}
	srv.observe(srv.roster.Changes()...)
}

// noticeStall tells a fail-closed server that its lease watch has stalled, if it stays cut off from
// etcd.
func (srv *server) noticeStall() {
	if !srv.on || !srv.policy.Knowledge.FailClosed {
		return
	}
	srv.s.loop.After(watchStalls, srv.gate, func() {
		if srv.cutOff {
			srv.s.reached.note(ReachedWatchStalled)
			srv.observe(proxy.LeaseWatch{Stalled: true})
		}
	})
}

// watchResumed is called when a lease watch delivers events again. After a long gap, the server
// asks every peer again.
func (srv *server) watchResumed() {
	if srv.policy.Knowledge.FailClosed {
		srv.observe(proxy.LeaseWatch{})
	}
	if srv.policy.Fetching.AfterChange > 0 && srv.s.loop.Now()-srv.cutAt > watchGap {
		srv.schedule.Changed(srv.s.wall())
		srv.pump()
	}
}
