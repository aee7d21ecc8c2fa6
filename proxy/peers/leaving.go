package peers

import (
	"time"

	"golang.org/x/mod/semver"
)

// deletesIdentity is the first version whose kube-apiservers delete their identity lease when they
// stop (k8s.io/kubernetes, pkg/controlplane/apiserver/server.go). After a stop of an earlier
// version, the lease stays for an hour.
const deletesIdentity = "v1.35.0"

// leaving is the knowledge of a server that has withdrawn its endpoint lease, or its identity lease
// if it had no other.
type leaving struct {
	withdrawn bool
	at        time.Duration // Roster.observed at that time
	ended     bool          // it has refused or reset a connection since

	incarnation string // the holder of the deleted endpoint lease; "" if no lease was deleted
	holder      string // the holder of the identity lease at that time
}

// leave handles the deletion of the endpoint lease. If this version of the server deletes its
// identity lease when it stops, an existing identity lease shows that only the proxy has stopped.
// For other versions, only the next renewal of the identity lease shows this.
func (m *member) leave(at time.Duration) {
	m.suspended = semver.Compare(m.version, deletesIdentity) < 0
	m.left = leaving{withdrawn: true, at: at, incarnation: m.endpoint.holder}
	if m.identity != nil {
		m.left.holder = m.identity.holder
	}
	m.endpoint, m.address, m.serves = nil, "", ""
}

// alone returns the incarnation of a server that has only an identity lease. If only its proxy has
// stopped, the incarnation does not change, so that the table does not forget what the server
// serves.
func (m *member) alone() string {
	if !m.reported.live {
		m.left = leaving{} // the table has forgotten it
	}
	if m.left.incarnation != "" && m.left.holder == m.identity.holder {
		return m.left.incarnation
	}
	return m.identity.holder
}

// lingering adds the last address of a server that has withdrawn its leases to its state, by rule
// (h) of the package's comment. The server is asked directly: when it no longer answers, it has
// ended.
func (r *Roster) lingering(m *member, s state) state {
	switch last := m.reported; {
	case m.left.withdrawn && !m.left.ended && r.observed-m.left.at < r.config.Leaving && last.live && last.address != "" && s.address == "":
		return state{live: true, incarnation: s.incarnation, address: last.address, direct: true, serves: last.serves}
	case !s.live:
		return state{}
	}
	return s
}
