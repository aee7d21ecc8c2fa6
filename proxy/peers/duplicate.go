package peers

import "github.com/skewproof/skewproof/proxy"

// An identity is a hash of a host name (KEP-4020), so upstream takes two hosts with the same name
// for one server. Each of them overwrites the key of the other. Requests for a resource that only
// one of them serves alternate between 200 and 404. Here the second server gets a
// [proxy.DuplicateID].

// holderOf returns the server that wrote a key, by rule (f) of the package's comment.
func (r *Roster) holderOf(k Key) proxy.ServerID {
	other := proxy.DuplicateID(k.ID, k.Address)
	switch m := r.members[k.ID]; {
	case k.Address == "":
		return k.ID
	case k.ID == r.config.Self:
		if r.config.Address == "" || r.config.Address == k.Address {
			return k.ID
		}
		return other
	case r.members[other] != nil:
		return other
	case m == nil || m.key == nil || m.key.address == "" || m.key.address == k.Address:
		return k.ID
	case r.expired(m):
		return k.ID // it restarted at another address
	default:
		return other
	}
}

// expired reports whether a member's key was not renewed in time.
func (r *Roster) expired(m *member) bool { return r.observed-m.key.seen >= KeyTTL }

// settleDuplicates forgets the expired keys of duplicates. If a duplicate has a valid key and the
// first server's key has expired, the duplicate replaces the first server: it is the same server at
// another address.
func (r *Roster) settleDuplicates(names []proxy.ServerID) {
	for _, name := range names {
		id, m := name.Identity(), r.members[name]
		if id == name || m.key == nil {
			continue
		}
		if r.expired(m) {
			m.key = nil
			continue
		}
		if of := r.members[id]; id != r.config.Self && of != nil && of.key != nil && r.expired(of) {
			of.key, m.key = m.key, nil
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
