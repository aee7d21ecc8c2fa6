package peers

import "github.com/skewproof/skewproof/proxy"

// An identity is a hash of a host name (KEP-4020), so upstream takes two hosts with the same name
// for one server. Each of them overwrites the leases of the other. Requests for a resource that
// only one of them serves alternate between 200 and 404. Here the second server gets a
// [proxy.DuplicateID].

// holderOf returns the server that wrote an endpoint lease, by rule (f) of the package's comment.
func (r *Roster) holderOf(l EndpointLease) proxy.ServerID {
	other := proxy.DuplicateID(l.ID, l.Address)
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
	case m == nil || m.endpoint == nil || m.address == "":
		return l.ID
	case m.endpoint.holder == l.Holder || m.address == l.Address:
		return l.ID // it has moved or restarted
	case r.expired(m):
		return l.ID // it restarted at another address
	default:
		return other
	}
}

// expired reports whether a member's endpoint lease was not renewed in time.
func (r *Roster) expired(m *member) bool { return r.observed-m.endpoint.seen >= m.duration }

// settleDuplicates forgets the expired endpoint leases of duplicates. If a duplicate has a valid
// lease and the first server's lease has expired, the duplicate replaces the first server: it is
// the same server at another address.
func (r *Roster) settleDuplicates(names []proxy.ServerID) {
	for _, name := range names {
		id, m := name.Identity(), r.members[name]
		if id == name || m.endpoint == nil {
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

// Duplicates returns the live servers that have the same identity as another server, sorted.
func (r *Roster) Duplicates() []proxy.ServerID {
	var all []proxy.ServerID
	for _, name := range r.names() {
		if name != name.Identity() && r.members[name].reported.live {
			all = append(all, name)
		}
	}
	return all
}
