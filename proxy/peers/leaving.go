package peers

import "golang.org/x/mod/semver"

// deletesIdentity is the first version whose kube-apiservers delete their identity lease when they
// stop (k8s.io/kubernetes, pkg/controlplane/apiserver/server.go). After a stop of an earlier
// version, the lease stays for an hour.
const deletesIdentity = "v1.35.0"

// leaving is the knowledge of a server whose proxy has deleted its endpoint lease.
type leaving struct {
	incarnation string // the holder of the deleted endpoint lease; "" if no lease was deleted
	holder      string // the holder of the identity lease at that time
}

// leave handles the deletion of the endpoint lease. If this version of the server deletes its
// identity lease when it stops, an existing identity lease shows that only the proxy has stopped.
// For other versions, only the next renewal of the identity lease shows this.
func (m *member) leave() {
	m.suspended = semver.Compare(m.version, deletesIdentity) < 0
	m.left = leaving{incarnation: m.endpoint.holder}
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
