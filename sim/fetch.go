package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/peers"
	"github.com/skewproof/skewproof/sim/vtime"
)

// round is one round of fetches in progress.
type round struct {
	srv      *server
	gate     *vtime.Gate
	round    peers.Round
	peers    []proxy.PeerView
	results  []proxy.FetchResult
	resolved []bool
	began    time.Time
	next     int // index of the next peer, if the peers are asked one after the other
	open     int // number of peers whose answers are not complete

	// Most rounds are about one peer.
	onePeer     [1]proxy.PeerView
	oneResult   [1]proxy.FetchResult
	oneResolved [1]bool
	oneQuestion question
}

// pump starts the rounds that are due, and sets a timer for its next call.
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

// arm sets the timer to the next time at which the schedule or the table has something to do.
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
		return // the timer is already set to an earlier time, when pump runs again
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

// beginRound asks the peers of a round.
func (srv *server) beginRound(r peers.Round) {
	b := srv.s.rounds.next()
	*b = round{srv: srv, gate: srv.gate, round: r, began: srv.s.wall()}
	if r.All {
		b.peers = slices.DeleteFunc(srv.store.Table().Peers(), func(p proxy.PeerView) bool { return !p.Live })
	} else if p, ok := srv.store.Table().Peer(r.Key); ok && p.Live {
		b.onePeer[0] = p
		b.peers = b.onePeer[:]
	}
	if b.results, b.resolved = b.oneResult[:], b.oneResolved[:]; len(b.peers) != 1 {
		b.results, b.resolved = make([]proxy.FetchResult, len(b.peers)), make([]bool, len(b.peers))
	}
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

// ask asks one peer for both documents: at the same time, or one after the other.
func (b *round) ask(i int) {
	p := &b.peers[i]
	b.results[i] = proxy.FetchResult{ID: p.ID, Incarnation: p.Incarnation}
	if p.Address == "" {
		for root := range b.results[i].Roots {
			b.results[i].Roots[root].Failed = "its address is not known"
		}
		began := b.srv.s.wall()
		b.srv.s.loop.After(0, b.gate, func() { b.asked(i, began) })
		return
	}
	b.resolved[i] = true
	q := &b.oneQuestion
	if len(b.peers) != 1 {
		q = &question{}
	}
	q.b, q.peer, q.began, q.left = b, i, b.srv.s.wall(), 2
	q.unroutable = b.srv.s.link(b.srv.index, b.srv.s.byAddress[p.Address]).obstacle == scenario.Unroutable
	q.fetch(0)
	if b.srv.policy.Fetching.Together {
		q.fetch(1)
	}
}

// question asks one peer for both documents.
type question struct {
	b       *round
	peer    int // index of round.peers
	began   time.Time
	left    int // number of documents that have neither arrived nor failed
	fetches [2]fetch
	// unroutable is true if no path leads to the address that the peer advertised. The address is
	// not looked up again for the second document.
	unroutable bool
	refused    bool // a connection was refused or reset
}

// fetch asks for one of the two documents.
type fetch struct {
	q    *question
	root int
	x    *exchange
	late vtime.Timer
	over bool
}

func (q *question) fetch(root int) {
	f := &q.fetches[root]
	f.q, f.root = q, root
	s, srv := q.b.srv.s, q.b.srv
	f.x = s.fetch(s.link(srv.index, f.target().index), root, f)
	if limit := srv.policy.Fetching.Timeout; limit > 0 {
		f.late.Set(&s.loop, limit, q.b.gate, (*lateFetch)(f))
	}
}

func (f *fetch) target() *server {
	b := f.q.b
	return b.srv.s.servers[b.srv.s.byAddress[b.peers[f.q.peer].Address]]
}

// progressed checks what has arrived.
func (f *fetch) progressed() {
	switch x := f.x; {
	case x == nil || f.over:
	case x.err != nil && x.status == 200 && x.brought == 0 && f.q.b.srv.policy.Quirks.EmptyIsDocument:
		f.done("")
	case x.err != nil:
		f.q.refused = f.q.refused || errors.Is(x.err, errRefused) || errors.Is(x.err, errReset)
		f.done("it could not be reached")
	case x.ended && x.status != 200:
		x.drop()
		f.done("it answered " + itoa(x.status))
	case x.ended:
		x.drop()
		result := &f.q.b.results[f.q.peer]
		result.Roots[f.root].Groups, result.Version = x.fetched.groups, x.fetched.version
		f.done("")
	}
}

// lateFetch is the event that the time for a fetch is over.
type lateFetch fetch

func (f *lateFetch) Happen() {
	f.x.giveUp()
	(*fetch)(f).done("it did not answer in time")
}

// done records how the fetch ended. Then the other document is fetched, or the answers of the peer
// are used.
func (f *fetch) done(failed string) {
	if f.over {
		return
	}
	f.over = true
	f.late.Stop()
	b := f.q.b
	s := b.srv.s
	b.results[f.q.peer].Roots[f.root].Failed = failed
	s.counts.Fetches++
	s.trace.add(s.loop.Now(), eventFetched, b.srv.index, f.target().index, uint64(f.root)<<1|bit(failed == ""))
	s.loop.Schedule(s.loop.Now(), b.gate, (*endedFetch)(f))
}

// endedFetch is the event after a fetch that decides what to do next.
type endedFetch fetch

func (f *endedFetch) Happen() {
	q := f.q
	switch q.left--; {
	case q.left == 0:
		q.found()
		q.b.asked(q.peer, q.began)
	case !q.b.srv.policy.Fetching.Together:
		q.fetch(1)
	}
}

// found tells the roster what the peer says about itself.
func (q *question) found() {
	srv := q.b.srv
	if srv.roster == nil || srv.gate != q.b.gate {
		return
	}
	if srv.roster.Fetched(q.b.peers[q.peer].ID, q.b.results[q.peer].Version, q.refused, srv.s.wall()) {
		srv.observe(srv.roster.Changes()...)
	}
}

// asked is called when the fetches from one peer have ended, with or without success.
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
		failed = failed || !b.resolved[i] || !peers.Succeeded(srv.policy.Quirks, b.results[i])
	}
	srv.rounds--
	srv.schedule.Finished(b.round, failed, srv.s.wall())
	srv.pump()
}

// tell passes a fetched result on to the table.
func (srv *server) tell(e proxy.Event) {
	srv.store.Observe(srv.s.setup.events(srv, []proxy.Event{e})...)
}

// settleFirst tells the table that everything that existed at the start is known. This is for a
// policy that waits for peers, once every live peer was asked.
func (srv *server) settleFirst() {
	if !srv.policy.Knowledge.WaitForPeers || srv.store.Table().Synced() {
		return
	}
	for _, p := range srv.store.Table().Peers() {
		if p.Live && !srv.asked[srv.s.byID[p.ID]] {
			return
		}
	}
	srv.store.Observe(proxy.Synced{})
}

// crashIfDue ends the process if its version crashes after a failed fetch.
func (srv *server) crashIfDue() {
	if why := srv.store.Table().Crashed(); why != "" && srv.phase != down {
		srv.s.reached.note(ReachedCrash)
		srv.s.loop.After(0, nil, func() {
			if srv.phase != down {
				srv.kill(history.StateCrashed, why)
				srv.s.driver.wake()
			}
		})
	}
}
