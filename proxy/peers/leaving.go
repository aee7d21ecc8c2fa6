package peers

import "golang.org/x/mod/semver"

// deletesIdentity is the first version whose kube-apiservers delete their identity leases when they
// stop (k8s.io/kubernetes, pkg/controlplane/apiserver/server.go). Earlier ones leave them for an
// hour.
const deletesIdentity = "v1.35.0"

// leaving is what is known of a server whose proxy has deleted its endpoint lease.
type leaving struct {
	incarnation string // as the endpoint lease said; "" if none was deleted
	holder      string // of the identity lease then
}

// leave takes in that the endpoint lease was deleted. If the server deletes its identity lease when
// it stops, that lease shows that only the proxy has stopped. Else nothing shows it before the next
// renewal.
func (m *member) leave() {
	m.suspended = semver.Compare(m.version, deletesIdentity) < 0
	m.left = leaving{incarnation: m.endpoint.holder}
	if m.identity != nil {
		m.left.holder = m.identity.holder
	}
	m.endpoint, m.address, m.serves = nil, "", ""
}

// alone is the incarnation of a server that has only an identity lease. What it serves is not
// forgotten if its proxy alone has stopped.
func (m *member) alone() string {
	if !m.reported.live {
		m.left = leaving{} // it was forgotten
	}
	if m.left.incarnation != "" && m.left.holder == m.identity.holder {
		return m.left.incarnation
	}
	return m.identity.holder
}
