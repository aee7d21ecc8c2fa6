package peers

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/proxy"
)

// While proxies are put in front of one server after another, and while they are removed, some
// kube-apiservers have none. Nobody publishes where these are. They serve what only they serve, all
// the same, so they are asked at addresses from elsewhere: rule (g) of the package's comment.

// SetDirect replaces RosterConfig.Direct.
func (r *Roster) SetDirect(direct []StaticPeer) { r.direct = addressesOf(direct) }

func addressesOf(all []StaticPeer) map[proxy.ServerID]string {
	addresses := make(map[proxy.ServerID]string, len(all))
	for _, p := range all {
		addresses[p.ID] = p.Address
	}
	return addresses
}

// directly is the state of a live server, of the incarnation, that has no proxy.
func (r *Roster) directly(id proxy.ServerID, m *member, incarnation string) state {
	address := r.direct[id]
	if address == "" && r.config.Advertised {
		address = m.own
	}
	return state{live: true, incarnation: incarnation, address: address, direct: address != ""}
}

// identityCounts reports whether the identity lease alone shows that the server lives.
func (r *Roster) identityCounts(m *member) bool {
	return m.identity != nil && !m.suspended && (r.config.StaleAfter == 0 || r.observed-m.identity.seen < r.config.StaleAfter)
}

// outlived reports whether the server has renewed its identity lease since its expired endpoint
// lease should have been renewed.
func (r *Roster) outlived(m *member) bool {
	return r.identityCounts(m) && m.identity.seen >= m.endpoint.seen+m.duration
}

// WithoutProxy are the live servers that have no proxy, as far as their leases show: those that are
// asked directly, and those whose address is not known. Both are sorted.
func (r *Roster) WithoutProxy() (direct, unknown []proxy.ServerID) {
	for _, id := range r.names() {
		switch m := r.members[id]; {
		case !m.reported.live:
		case m.reported.direct:
			direct = append(direct, id)
		case m.reported.address == "" && m.endpoint == nil:
			unknown = append(unknown, id)
		}
	}
	return direct, unknown
}

// advertises reports whether a server says itself where it is asked.
func (r *Roster) advertises(id proxy.ServerID) bool {
	m := r.members[id]
	return r.config.Advertised && m != nil && m.own != ""
}

// hosts are the host names of the live servers, this one included, as far as they are known.
func (r *Roster) hosts() map[proxy.ServerID]string {
	hosts := map[proxy.ServerID]string{}
	for id, m := range r.members { // in any order
		if m.identity != nil && m.host != "" && (m.reported.live || id == r.config.Self) {
			hosts[id] = m.host
		}
	}
	return hosts
}

// settled is for how long servers must have been without a proxy before the log says so. A server
// that starts has none for some seconds.
const settled = 10 * time.Second

// withoutProxy remembers which servers had no proxy: direct and unknown, see [Roster.WithoutProxy].
type withoutProxy struct {
	last, logged [2][]proxy.ServerID
	since        time.Time // of last
}

// logWithoutProxy logs which servers have no proxy, and when all have one again.
func (w *leaseWatch) logWithoutProxy(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var now [2][]proxy.ServerID
	now[0], now[1] = w.roster.WithoutProxy()
	same := func(with [2][]proxy.ServerID) bool { return slices.EqualFunc(now[:], with[:], slices.Equal) }
	if !same(w.without.last) {
		w.without.last, w.without.since = now, at
	}
	if at.Sub(w.without.since) < settled || same(w.without.logged) {
		return
	}
	w.without.logged = now
	switch {
	case len(now[1]) > 0:
		w.log.Warn("live servers have no proxy, and their addresses are not known: what no other server serves is answered with 503 "+
			"until they have a proxy, or their addresses are given", "servers", now[1], "asked directly", now[0])
	case len(now[0]) > 0:
		w.log.Info("live servers have no proxy, and are asked directly", "servers", now[0])
	default:
		w.log.Info("every live server has a proxy")
	}
}
