package peers

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/proxy"
)

// While servers get this proxy one after the other, and while they lose it, some kube-apiservers do
// not have it. They publish no endpoint lease. They may still serve resources that no other server
// serves. So they are asked at addresses that are known from elsewhere: rule (g) of the package's
// comment.

// SetDirect replaces the addresses that were found of kube-apiservers without a proxy. The map must
// not be changed afterwards.
func (r *Roster) SetDirect(found map[proxy.ServerID]string) { r.direct = found }

// directly returns the state of a live server without a proxy. incarnation is the server's.
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

// outlived reports whether the server lived longer than its proxy: it has renewed its identity
// lease after its expired endpoint lease should have been renewed.
func (r *Roster) outlived(m *member) bool {
	return r.identityCounts(m) && m.identity.seen >= m.endpoint.seen+m.duration
}

// WithoutProxy returns the live servers that have no proxy, as far as their leases show. direct are
// the servers that are asked directly, unknown the servers whose address is not known. Both are
// sorted.
func (r *Roster) WithoutProxy() (direct, unknown []proxy.ServerID) {
	for _, id := range r.names() {
		switch m := r.members[id]; {
		case !m.reported.live, m.identity == nil && m.endpoint == nil: // it leaves
		case m.reported.direct:
			direct = append(direct, id)
		case m.reported.address == "" && m.endpoint == nil:
			unknown = append(unknown, id)
		}
	}
	return direct, unknown
}

// advertises reports whether a server itself publishes the address at which it is asked.
func (r *Roster) advertises(id proxy.ServerID) bool {
	m := r.members[id]
	return r.config.Advertised && m != nil && m.own != ""
}

// hosts returns the host names of the live servers, including this one, as far as they are known.
func (r *Roster) hosts() map[proxy.ServerID]string {
	hosts := map[proxy.ServerID]string{}
	for id, m := range r.members { // in any order
		if m.identity != nil && m.host != "" && (m.reported.live || id == r.config.Self) {
			hosts[id] = m.host
		}
	}
	return hosts
}

// settled is how long servers must have been without a proxy before the log says so. A server that
// starts has no proxy for some seconds.
const settled = 10 * time.Second

// withoutProxy stores which servers had no proxy: direct and unknown, see [Roster.WithoutProxy].
type withoutProxy struct {
	last, logged [2][]proxy.ServerID
	since        time.Time // of last
}

// logWithoutProxy logs which servers have no proxy. It also logs when all of them have one again.
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
			"until they have a proxy, or a certificate for their host name alone", "servers", now[1], "asked directly", now[0])
	case len(now[0]) > 0:
		w.log.Info("live servers have no proxy, and are asked directly", "servers", now[0])
	default:
		w.log.Info("every live server has a proxy")
	}
}
