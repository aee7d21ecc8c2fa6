package proxy

import "sync"

// inFlight counts the requests in flight to each peer. The zero value counts none.
type inFlight struct {
	mu    sync.Mutex
	peers map[ServerID]int
}

// enter counts one more request to a peer, unless there are as many as allowed; zero allows any number.
func (f *inFlight) enter(peer ServerID, allowed int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if allowed > 0 && f.peers[peer] >= allowed {
		return false
	}
	if f.peers == nil {
		f.peers = map[ServerID]int{}
	}
	f.peers[peer]++
	return true
}

// leave takes back one enter. A peer without requests leaves no trace, since peers come and go.
func (f *inFlight) leave(peer ServerID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.peers[peer]--; f.peers[peer] <= 0 {
		delete(f.peers, peer)
	}
}
