package peers

import (
	"time"

	"golang.org/x/mod/semver"
)

// deletesIdentity is the first version whose kube-apiservers delete their identity lease when they
// stop (k8s.io/kubernetes, pkg/controlplane/apiserver/server.go). After a stop of an earlier
// version, the lease stays for an hour.
const deletesIdentity = "v1.35.0"

// stillCounts is how long a server that has withdrawn its key counts, even if connections to its
// last address are refused. The address may be wrong, and a server with this proxy serves for
// another second, in which its peers learn that it stops (package apiserver).
const stillCounts = 1500 * time.Millisecond

// leaving is the knowledge of a server that has withdrawn its key, or its identity lease if it had
// no key.
type leaving struct {
	withdrawn bool
	at        time.Duration // Roster.observed at that time
	since     time.Time     // the same by the clock
	ended     bool          // it has refused or reset a connection since
	holder    string        // of the identity lease at that time
}

// leave handles that a key is gone. If the key was withdrawn, and this version of the server
// deletes its identity lease when it stops, an existing identity lease shows that only the proxy
// has stopped. For other versions, only the next renewal of the identity lease shows this.
//
// If the key was only seen and never renewed, nobody knows how old it was. So it counts as expired:
// 503 and not 404.
func (r *Roster) leave(m *member, now time.Time) {
	age, aged := now.Sub(m.key.at), m.key.renewed
	m.lapsed, m.key = m.key.seen+KeyTTL, nil
	if age >= 0 && age < lapses {
		m.left = leaving{withdrawn: true, at: r.observed, since: now}
		if m.identity != nil {
			m.left.holder = m.identity.holder
		}
		if aged {
			m.lapsed, m.proof = 0, identified
			m.suspended = semver.Compare(m.version, deletesIdentity) < 0
		}
	}
	if m.identity == nil {
		m.proof = unproven
	}
}

// lingering adds the last address of a server that has withdrawn its key to its state, by rule (h)
// of the package's comment. The server is asked directly: when it no longer answers, it has ended.
// A server without an address cannot be asked. It counts for as long as it may be serving.
func (r *Roster) lingering(m *member, s state) state {
	last, longest := m.reported, r.config.Leaving
	if last.address == "" {
		longest = min(longest, stillCounts)
	}
	switch {
	case m.left.withdrawn && !m.left.ended && r.observed-m.left.at < longest && last.live && s.address == "":
		return state{live: true, incarnation: s.incarnation, address: last.address, direct: last.address != ""}
	case !s.live:
		return state{}
	}
	return s
}
