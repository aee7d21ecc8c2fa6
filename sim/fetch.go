package sim

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/peers"
	"github.com/skewproof/skewproof/sim/vtime"
)

// round is one round of fetches under way.
type round struct {
	srv      *server
	gate     *vtime.Gate
	round    peers.Round
	peers    []proxy.PeerView
	results  []proxy.FetchResult
	resolved []bool
	began    time.Time
	next     int // of peers, when they are asked one after the other
	open     int // peers whose answers are not complete
}

// pump begins what is due and sees to it that it is called again in time.
func (srv *server) pump() {
	if !srv.on || srv.phase == down || !srv.firstDone {
		return
	}
	now := srv.s.wall()
	if !srv.policy.Knowledge.StorageVersions {
		for _, r := range srv.schedule.Due(now) {
			srv.beginRound(r)
		}
	}
	srv.settleFirst()
	srv.crashIfDue()
	srv.arm()
}

// arm sets the timer to when the schedule or the table next has something to do.
func (srv *server) arm() {
	s := srv.s
	at, ok := srv.store.Table().Wake()
	if !srv.policy.Knowledge.StorageVersions {
		if due, busy := srv.schedule.Wake(); busy && (!ok || due.Before(at)) {
			at, ok = due, true
		}
	}
	if !ok {
		return
	}
	when := max(s.since(at), s.loop.Now())
	if srv.wakeAt != 0 && srv.wakeAt <= when && srv.wakeAt > s.loop.Now() {
		return // it is set to something earlier, and will look again
	}
	srv.wakeAt = when
	life := srv.incarnation
	s.loop.At(when, srv.gate, func() {
		if srv.incarnation != life || srv.phase == down || srv.wakeAt != when {
			return
		}
		srv.wakeAt = 0
		srv.store.Observe(proxy.Tick{At: s.wall()})
		srv.pump()
	})
}

// beginRound asks the peers that a round is about.
func (srv *server) beginRound(r peers.Round) {
	b := &round{srv: srv, gate: srv.gate, round: r, began: srv.s.wall()}
	if r.All {
		b.peers = slices.DeleteFunc(srv.store.Table().Peers(), func(p proxy.PeerView) bool { return !p.Live })
	} else if p, ok := srv.store.Table().Peer(r.Key); ok && p.Live {
		b.peers = []proxy.PeerView{p}
	}
	b.results, b.resolved = make([]proxy.FetchResult, len(b.peers)), make([]bool, len(b.peers))
	b.open = len(b.peers)
	srv.rounds++
	if len(b.peers) == 0 {
		srv.s.loop.After(0, srv.gate, b.finish)
		return
	}
	if srv.policy.Fetching.Together {
		for i := range b.peers {
			b.ask(i)
		}
		return
	}
	b.ask(0)
}

// ask asks one peer for both documents: together, or one after the other.
func (b *round) ask(i int) {
	p := b.peers[i]
	b.results[i] = proxy.FetchResult{ID: p.ID, Incarnation: p.Incarnation}
	if p.Address == "" {
		for root := range b.results[i].Roots {
			b.results[i].Roots[root].Failed = "its address is not known"
		}
		b.srv.s.loop.After(0, b.gate, func() { b.asked(i, b.srv.s.wall()) })
		return
	}
	b.resolved[i] = true
	began := b.srv.s.wall()
	if b.srv.policy.Fetching.Together {
		left := 2
		for root := range 2 {
			b.fetch(i, root, func() {
				if left--; left == 0 {
					b.asked(i, began)
				}
			})
		}
		return
	}
	b.fetch(i, 0, func() { b.fetch(i, 1, func() { b.asked(i, began) }) })
}

// fetch asks for one document.
func (b *round) fetch(i, root int, then func()) {
	s, srv := b.srv.s, b.srv
	result := &b.results[i]
	target := s.servers[s.byAddress[b.peers[i].Address]]
	var stop func() bool
	var x *exchange
	over := false
	done := func(failed string) {
		if over {
			return
		}
		over = true
		if stop != nil {
			stop()
		}
		result.Roots[root].Failed = failed
		s.trace.add(s.loop.Now(), eventFetched, srv.index, target.index, uint64(root)<<1|bit(failed == ""))
		s.loop.After(0, b.gate, then)
	}
	x = s.fetch(s.link(srv.index, target.index), root, func() {
		switch {
		case x == nil || over:
		case x.err != nil:
			done("it could not be reached")
		case x.ended && x.status != 200:
			x.drop()
			done("it answered " + itoa(x.status))
		case x.ended:
			x.drop()
			result.Roots[root].Groups, result.Version = x.fetched.groups, x.fetched.version
			done("")
		}
	})
	if limit := srv.policy.Fetching.Timeout; limit > 0 {
		stop = s.loop.Timer(limit, b.gate, func() {
			x.giveUp()
			done("it did not answer in time")
		})
	}
}

// asked is when one peer has answered, or not.
func (b *round) asked(i int, began time.Time) {
	srv := b.srv
	if srv.gate != b.gate {
		return
	}
	srv.noteFetched(&b.results[i])
	if srv.policy.Knowledge.KeepLastGood {
		srv.tell(proxy.Fetched{Results: b.results[i : i+1 : i+1], At: began})
		srv.asked[srv.s.byID[b.peers[i].ID]] = true
	}
	b.open--
	switch b.next++; {
	case b.open == 0:
		b.finish()
	case !srv.policy.Fetching.Together:
		b.ask(b.next)
	}
}

// finish ends the round.
func (b *round) finish() {
	srv := b.srv
	if srv.gate != b.gate {
		return
	}
	failed := false
	if !srv.policy.Knowledge.KeepLastGood {
		var fetched []proxy.FetchResult
		for i, r := range b.results {
			if b.resolved[i] {
				fetched = append(fetched, r)
			}
			srv.asked[srv.s.byID[b.peers[i].ID]] = true
		}
		srv.tell(proxy.Fetched{Results: fetched, At: b.began})
	}
	for i := range b.results {
		failed = failed || !b.resolved[i] || !peers.Succeeded(srv.policy.Fetching, b.results[i])
	}
	srv.rounds--
	srv.schedule.Finished(b.round, failed, srv.s.wall())
	srv.pump()
}

// tell passes what was fetched on to the table.
func (srv *server) tell(e proxy.Event) {
	srv.store.Observe(srv.s.setup.events(srv, []proxy.Event{e})...)
}

// settleFirst observes that all that existed at the start is known, under a policy that waits for it: every peer that lives was asked.
func (srv *server) settleFirst() {
	if srv.roster == nil || srv.store.Table().Synced() {
		return
	}
	for _, p := range srv.store.Table().Peers() {
		if p.Live && !srv.asked[srv.s.byID[p.ID]] {
			return
		}
	}
	srv.store.Observe(proxy.Synced{})
}

// crashIfDue ends a process of a version that a failed fetch ends.
func (srv *server) crashIfDue() {
	if why := srv.store.Table().Crashed(); why != "" && srv.phase != down {
		srv.s.reached.note(ReachedCrash)
		srv.s.suspect = true
		srv.s.loop.After(0, nil, func() {
			if srv.phase != down {
				srv.kill("crashed", why)
				srv.s.driver.wake()
			}
		})
	}
}
