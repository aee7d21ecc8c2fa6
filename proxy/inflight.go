package proxy

import "sync"

// inFlight counts the requests to each peer that wait for the headers of its answer, streams excepted. The zero value counts none.
type inFlight struct {
	mu    sync.Mutex
	peers map[ServerID]int
	users map[tenant]int
}

// tenant is a user who holds places at a peer.
type tenant struct {
	peer ServerID
	user string
}

// share is the part of a peer's places that one user may hold: whoever asks slowly must not keep everybody else from it.
const share = 4

// enter counts one more request of a user to a peer, unless there are as many as allowed, which is more than zero, or the user has its
// share of them.
func (f *inFlight) enter(peer ServerID, user string, allowed int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.peers == nil {
		f.peers, f.users = map[ServerID]int{}, map[tenant]int{}
	}
	who := tenant{peer, user}
	if f.peers[peer] >= allowed || f.users[who] >= max(1, allowed/share) {
		return false
	}
	f.peers[peer]++
	f.users[who]++
	return true
}

// leave takes back one enter. A peer without requests leaves no trace, since peers come and go.
func (f *inFlight) leave(peer ServerID, user string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.peers[peer]--; f.peers[peer] <= 0 {
		delete(f.peers, peer)
	}
	who := tenant{peer, user}
	if f.users[who]--; f.users[who] <= 0 {
		delete(f.users, who)
	}
}
