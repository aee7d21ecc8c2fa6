package proxy

import (
	"slices"
	"sync"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/skewproof/skewproof/proxy/internal/share"
)

// inFlight counts the requests to each peer that wait for its headers. The zero value is empty.
type inFlight struct {
	mu    sync.Mutex
	peers map[ServerID]*share.Pool
}

// reserve says how many more requests the control plane may have in flight: 1/reserve of the bound.
const reserve = 4

// enter counts one more request of a user to a peer until leave is called. ok is false if allowed
// requests to the peer are in flight already, or if the user has its share of them (see
// [share.Pool]). The bound keeps slow requests from blocking others. Zero allowed: no bound.
func (f *inFlight) enter(peer ServerID, u user.Info, allowed int) (leave func(), ok bool) {
	if allowed <= 0 {
		return func() {}, true
	}
	if controlPlane(u) {
		allowed += allowed / reserve
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.peers == nil {
		f.peers = map[ServerID]*share.Pool{}
	}
	pool := f.peers[peer]
	if pool == nil {
		pool = &share.Pool{}
	}
	if !pool.Take(u.GetName(), 1, allowed) {
		return nil, false
	}
	f.peers[peer] = pool
	return sync.OnceFunc(func() { f.leave(peer, u.GetName()) }), true
}

// leave ends a request of enter. It deletes a pool without requests, because peers appear and
// disappear.
func (f *inFlight) leave(peer ServerID, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pool := f.peers[peer]
	pool.Give(name, 1)
	if pool.Used() == 0 {
		delete(f.peers, peer)
	}
}

// controlPlane reports whether the cluster needs this user's requests to work. Such users have
// priority levels of their own in a kube-apiserver (k8s.io/apiserver, apis/flowcontrol/bootstrap:
// exempt, system, leader-election, workload-high).
func controlPlane(u user.Info) bool {
	switch u.GetName() {
	case user.APIServerUser, user.KubeControllerManager, user.KubeScheduler:
		return true
	}
	return slices.ContainsFunc(u.GetGroups(), func(group string) bool {
		return group == user.SystemPrivilegedGroup || group == user.NodesGroup || group == "system:serviceaccounts:kube-system"
	})
}
