package proxy

import (
	"sync"
	"sync/atomic"
)

// answerCounts counts the answers of each peer. The zero value has none. It is safe for concurrent
// use.
type answerCounts struct {
	peers sync.Map // *atomic.Uint64 by ServerID
}

// of returns the number of answers of a peer so far.
func (c *answerCounts) of(peer ServerID) uint64 {
	if n, ok := c.peers.Load(peer); ok {
		return n.(*atomic.Uint64).Load()
	}
	return 0
}

// add counts one more answer of a peer.
func (c *answerCounts) add(peer ServerID) {
	n, ok := c.peers.Load(peer)
	if !ok {
		n, _ = c.peers.LoadOrStore(peer, new(atomic.Uint64))
	}
	n.(*atomic.Uint64).Add(1)
}
