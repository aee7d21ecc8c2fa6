package peers

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/proxy"
)

// While servers get this proxy one after the other, and while they lose it, some kube-apiservers do
// not have it. Those whose own Mixed Version Proxy is off too, or that are too old for it, write no
// key. They may still serve resources that no other server serves. So they are identified, and
// asked directly: rule (g) of the package's comment.

// SetDirect replaces the addresses at which kube-apiservers without a key were identified. The map
// must not be changed afterwards.
func (r *Roster) SetDirect(found map[proxy.ServerID]string) { r.direct = found }

// lacksKey reports whether a server seems to run without writing a key. If its key has expired, its
// identity lease must have been renewed after the key should have been.
func (r *Roster) lacksKey(m *member) bool {
	lapsed := m.lapsed
	if m.key != nil {
		lapsed = m.key.seen + KeyTTL
	}
	return r.renews(m) && (m.key == nil || r.expired(m)) && (lapsed == 0 || m.identity.seen >= lapsed)
}

// WithoutKey returns the servers that seem to run without writing a key. direct are those that were
// identified. The others count only if their key was seen before. Both are sorted.
func (r *Roster) WithoutKey() (direct, unknown []proxy.ServerID) {
	for _, id := range r.names() {
		switch m := r.members[id]; {
		case id == r.config.Self || !r.lacksKey(m):
		case r.direct[id] != "":
			direct = append(direct, id)
		default:
			unknown = append(unknown, id)
		}
	}
	return direct, unknown
}

// hosts returns the host names of all servers whose lease or key is renewed, including this one, as
// far as they are known.
func (r *Roster) hosts() map[proxy.ServerID]string {
	hosts := map[proxy.ServerID]string{}
	for id, m := range r.members { // in any order
		if m.identity != nil && m.host != "" && (m.reported.live || r.renews(m)) {
			hosts[id] = m.host
		}
	}
	return hosts
}

// settled is how long servers must have been without a key before the log says so. A server that
// starts has no key for some seconds.
const settled = 10 * time.Second

// withoutKey stores which servers had no key: direct and unknown, see [Roster.WithoutKey].
type withoutKey struct {
	last, logged [2][]proxy.ServerID
	since        time.Time // of last
}

// logWithoutKey logs which servers have no key. It also logs when all of them have one again.
func (w *leaseWatch) logWithoutKey(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var now [2][]proxy.ServerID
	now[0], now[1] = w.roster.WithoutKey()
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
		w.log.Warn("identity leases are renewed by servers that publish no address for peers and could not be identified; what only they serve is "+
			"not found, unless they published an address before: they need a proxy, or --endpoint-reconciler-type=lease and a certificate for their host name alone",
			"servers", now[1], "asked directly", now[0])
	case len(now[0]) > 0:
		w.log.Info("servers publish no address for peers, and are asked directly", "servers", now[0])
	default:
		w.log.Info("every server publishes its address for peers")
	}
}
