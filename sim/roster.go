package sim

import (
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/peers"
)

// enrol feeds the roster. Only a sidecar reads endpoint leases.
func (srv *server) enrol(about *server, was, now lease) []proxy.Event {
	at := srv.s.wall()
	srv.catchUp(about)
	if now.identity {
		srv.roster.Identity(peers.IdentityLease{ID: about.id, Holder: itoa(now.holder), Renewed: srv.s.at(now.renewed)}, at)
	} else if was.identity {
		srv.roster.IdentityGone(about.id, at)
	}
	switch {
	case !srv.sidecar():
	case now.endpoint:
		srv.roster.Endpoint(peers.EndpointLease{
			ID: about.id, Holder: itoa(now.published), Renewed: srv.s.at(now.beaten), Address: about.address, Duration: endpointTTL, Serves: now.serves,
		}, at)
	case was.endpoint:
		srv.roster.EndpointGone(about.id, at)
	}
	return srv.roster.Changes()
}

// catchUp feeds the roster the renewals of all others that were not carried out: it counts the time by what it hears, and who is not heard
// when somebody else is seems to be gone.
func (srv *server) catchUp(but *server) {
	at := srv.s.wall()
	for i, about := range srv.s.servers {
		switch was := &srv.view[i]; {
		case about == but || !about.leased:
		case about == srv:
			srv.roster.Identity(peers.IdentityLease{ID: srv.id, Holder: itoa(srv.lease.holder), Renewed: srv.s.at(srv.lease.renewed)}, at)
		default:
			about.refresh()
			if was.identity && about.lease.identity && was.holder == about.lease.holder {
				was.renewed = about.lease.renewed
				srv.roster.Identity(peers.IdentityLease{ID: about.id, Holder: itoa(was.holder), Renewed: srv.s.at(was.renewed)}, at)
			}
			if srv.sidecar() && was.endpoint && about.lease.endpoint && was.published == about.lease.published {
				was.beaten = about.lease.beaten
				srv.roster.Endpoint(peers.EndpointLease{
					ID: about.id, Holder: itoa(was.published), Renewed: srv.s.at(was.beaten), Address: about.address, Duration: endpointTTL, Serves: was.serves,
				}, at)
			}
		}
	}
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

// noticeStall lets a server that fails closed notice, if it stays cut off from etcd, that its lease watch has stalled.
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

// watchResumed is when a lease watch delivers events again. After a gap long enough to be noticed, the server asks every peer again.
func (srv *server) watchResumed() {
	if srv.policy.Knowledge.FailClosed {
		srv.observe(proxy.LeaseWatch{})
	}
	if srv.policy.Fetching.AfterChange > 0 && srv.s.loop.Now()-srv.cutAt > watchGap {
		srv.schedule.Changed(srv.s.wall())
		srv.pump()
	}
}
