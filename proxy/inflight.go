package proxy

import "sync"

// inFlight counts the requests to each peer that wait for its headers. The zero value is empty.
type inFlight struct {
	mu    sync.Mutex
	peers map[ServerID]int
	users map[tenant]int
}

type tenant struct {
	peer ServerID
	user string
}

// share: one user may have 1/share of a peer's requests, so that slow ones do not block others.
const share = 4

// enter counts one more request of a user to a peer until leave is called. ok is false if allowed
// requests are in flight already, or the user has its share of them. Zero allowed: no bound.
func (f *inFlight) enter(peer ServerID, user string, allowed int) (leave func(), ok bool) {
	if allowed <= 0 {
		return func() {}, true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.peers == nil {
		f.peers, f.users = map[ServerID]int{}, map[tenant]int{}
	}
	who := tenant{peer, user}
	if f.peers[peer] >= allowed || f.users[who] >= max(1, allowed/share) {
		return nil, false
	}
	f.peers[peer]++
	f.users[who]++
	return sync.OnceFunc(func() { f.leave(who) }), true
}

// leave deletes counts that reach zero, because peers and users come and go.
func (f *inFlight) leave(who tenant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.peers[who.peer]--; f.peers[who.peer] <= 0 {
		delete(f.peers, who.peer)
	}
	if f.users[who]--; f.users[who] <= 0 {
		delete(f.users, who)
	}
}
