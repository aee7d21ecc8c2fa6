package peers

import "github.com/skewproof/skewproof/proxy"

// namesake is the name by which a server at an address is known here that has the identity of another. An identity is a hash of a host name
// (KEP-4020), so two hosts of one name are one server to upstream: each writes over what the other says of itself, and who asks for what
// one of them serves is told by turns that it does not exist.
func namesake(id proxy.ServerID, address string) proxy.ServerID {
	return id + proxy.NamesakeMark + proxy.ServerID(address)
}

// namesakeOf is the identity that a namesake has; false if it is the name of none.
func namesakeOf(name proxy.ServerID) (proxy.ServerID, bool) {
	id := name.Identity()
	return id, id != name
}

// whose says which server an endpoint lease is about, by the rule (f) of the package's comment.
func (r *Roster) whose(l EndpointLease) proxy.ServerID {
	other := namesake(l.ID, l.Address)
	switch m := r.members[l.ID]; {
	case l.Address == "":
		return l.ID
	case l.ID == r.config.Self:
		if r.config.Address == "" || r.config.Address == l.Address {
			return l.ID
		}
		return other
	case r.members[other] != nil:
		return other
	case m == nil || m.static != "" || m.endpoint == nil || m.address == "":
		return l.ID
	case m.endpoint.holder == l.Holder || m.address == l.Address:
		return l.ID // it has moved, or was started anew
	case r.expired(m):
		return l.ID // and was started anew somewhere else
	default:
		return other
	}
}

// expired reports whether the endpoint lease of a member was not renewed in time.
func (r *Roster) expired(m *member) bool { return r.listened-m.endpoint.seen >= m.duration }

// settleNamesakes forgets namesakes that are not heard of any more, and lets one that goes on take the place of a server that does not: it was
// no namesake, but the same server at another address.
func (r *Roster) settleNamesakes(names []proxy.ServerID) {
	for _, name := range names {
		id, ok := namesakeOf(name)
		m := r.members[name]
		if !ok || m.endpoint == nil {
			continue
		}
		if r.expired(m) {
			m.endpoint, m.address, m.serves = nil, "", ""
			continue
		}
		if of := r.members[id]; id != r.config.Self && of != nil && of.endpoint != nil && r.expired(of) {
			of.endpoint, of.address, of.duration, of.serves = m.endpoint, m.address, m.duration, m.serves
			m.endpoint, m.address, m.serves = nil, "", ""
		}
	}
}

// Namesakes are the servers that live under an identity that is another's too, by the names under which the store is told of them, sorted.
func (r *Roster) Namesakes() []proxy.ServerID {
	var all []proxy.ServerID
	for _, name := range r.names() {
		if _, ok := namesakeOf(name); ok && r.members[name].told.live {
			all = append(all, name)
		}
	}
	return all
}
