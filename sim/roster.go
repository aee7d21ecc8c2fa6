package sim

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/peers"
)

// enrol passes the identity lease and the key of a server on to the roster.
func (srv *server) enrol(about *server, was, now lease) []proxy.Event {
	at := srv.s.wall()
	srv.catchUp(about)
	if now.identity {
		srv.hearIdentity(about, now)
	} else if was.identity {
		srv.roster.IdentityGone(about.id, at)
	}
	srv.roster.Marked(about.id, now.marked)
	switch {
	case now.endpoint:
		srv.hearKey(about, now, at)
	case was.endpoint:
		if was.published == now.published && was.beaten != now.beaten {
			srv.hearKey(about, lease{address: was.address, beaten: now.beaten}, srv.s.at(now.beaten)) // its last renewal
		}
		srv.roster.KeyGone(about.id, at)
	}
	events := srv.roster.Changes()
	srv.find()
	return events
}

// catchUp tells the roster the renewals of all other servers that were not simulated. The roster
// measures time by the changes that it sees, so without this it would believe that these servers
// are gone.
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
			if was.endpoint && about.lease.endpoint && was.published == about.lease.published {
				was.beaten = about.lease.beaten
				srv.hearKey(about, *was, srv.s.wall())
			}
		}
	}
}

// hearIdentity passes the identity lease of a server on to the roster.
func (srv *server) hearIdentity(about *server, l lease) {
	srv.roster.Identity(peers.IdentityLease{ID: about.id, Holder: itoa(l.holder), Renewed: srv.s.at(l.renewed)}, srv.s.wall())
}

// hearKey passes the key of a server on to the roster.
func (srv *server) hearKey(about *server, l lease, at time.Time) {
	srv.roster.Key(peers.Key{ID: about.id, Address: l.address, Renewal: int64(l.beaten)}, at)
}

// find searches for servers without a key, as the finder of package peers does, as long as the
// roster lacks one.
func (srv *server) find() {
	if srv.finding || srv.policy.Knowledge.StaleAfter == 0 || !srv.lacks() {
		return
	}
	srv.finding = true
	life := srv.incarnation
	srv.s.loop.After(findEvery, srv.gate, func() {
		if srv.incarnation != life || srv.phase == down {
			return
		}
		srv.finding = false
		if !srv.cutOff {
			srv.identify()
			srv.observe(srv.roster.Changes()...)
		}
		srv.find()
	})
}

// lacks reports whether the roster has a server without a key that was not found, or found one that
// has a key now or has ended.
func (srv *server) lacks() bool {
	direct, unknown := srv.roster.WithoutKey()
	return len(unknown) > 0 || len(direct) != len(srv.found)
}

// identify finds the servers without a key that can be reached. Their addresses are in etcd once
// they are ready.
func (srv *server) identify() {
	s := srv.s
	direct, unknown := srv.roster.WithoutKey()
	found := map[proxy.ServerID]string{}
	for _, id := range direct {
		found[id] = srv.found[id]
	}
	for _, id := range unknown {
		about := s.servers[s.byID[id]]
		if about.phase == running && about.does.Proxy == history.ProxyOff && about.gate.Open() && !s.link(srv.index, about.index).blocked() {
			found[id] = about.address
		}
	}
	srv.found = found
	srv.roster.SetDirect(found)
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

// noticeStall tells a fail-closed server that its watches have stalled, if it stays cut off from
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
