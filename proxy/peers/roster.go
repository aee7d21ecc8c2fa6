package peers

import (
	"maps"
	"slices"
	"time"

	"github.com/skewproof/skewproof/proxy"
)

const (
	defaultGoneAfter = time.Hour // for which upstream's identity lease is valid

	// ancient is the age of a lease that was never renewed. A greater one could overflow when it grows.
	ancient = 100 * 365 * 24 * time.Hour

	// hearing is how much of the time between two sightings counts as listening: every sidecar renews a lease within it.
	hearing = renewEvery
)

// RosterConfig says whom a [Roster] is about.
type RosterConfig struct {
	// Self is the local server. Its leases prove that the watch works, and name no peer.
	Self proxy.ServerID
	// Address is the address that the local server publishes. An endpoint lease of Self with another address is that of a second server
	// with the same identity. Empty: every lease of Self is the local server's.
	Address string
	// Static are peers that always live.
	Static []StaticPeer
	// StaleAfter is how long an identity lease counts after its last renewal (see [proxy.KnowledgePolicy]). Zero: for ever.
	StaleAfter time.Duration
	// GoneAfter is for how long an endpoint lease keeps its peer alive after it has expired. Zero: an hour.
	GoneAfter time.Duration
}

// Roster joins leases and configuration to the list of peers that live, by the rules in the package's comment. It is pure: every method that
// depends on time is given it. It is not safe for concurrent use.
type Roster struct {
	config  RosterConfig
	members map[proxy.ServerID]*member

	heard    time.Time     // when a lease was last seen to change
	listened time.Duration // the time that counts, see rule (e)
}

// member is what is known of one server, and what has been told of it.
type member struct {
	static   string // address by configuration, "" if there is none
	identity *renewal
	endpoint *renewal
	address  string        // as the endpoint lease says
	duration time.Duration // of the endpoint lease
	serves   string        // as the endpoint lease says
	fetched  string        // the Digest of what the server was last found to serve, "" if that is not known
	sighted  bool          // the endpoint lease was renewed since changes were last told

	// latest is the server that last wrote the endpoint lease: this one, or a second one with the same identity.
	latest proxy.ServerID

	// suspended: the endpoint lease was deleted, and the identity lease has not been renewed since (rule b).
	suspended bool

	told state
}

// renewal is one lease as it was last seen to change.
type renewal struct {
	holder  string
	renewed time.Time     // as it says itself
	seen    time.Duration // of Roster.listened; negative if the first sight was of an old lease
}

// state is what the store is told of a peer. The zero value is a peer that does not live.
type state struct {
	live        bool
	incarnation string
	address     string
	serves      string
}

// NewRoster returns a roster of the static peers alone.
func NewRoster(config RosterConfig) *Roster {
	if config.GoneAfter == 0 {
		config.GoneAfter = defaultGoneAfter
	}
	r := &Roster{config: config, members: map[proxy.ServerID]*member{}}
	for _, p := range config.Static {
		if p.ID != config.Self {
			r.member(p.ID).static = p.Address
		}
	}
	return r
}

// Clone returns a roster in the same state that shares nothing with this one.
func (r *Roster) Clone() *Roster {
	c := *r
	c.members = make(map[proxy.ServerID]*member, len(r.members))
	copies := make([]member, 0, len(r.members))
	for id, m := range r.members { // in any order
		copies = append(copies, *m) // renewals are never changed
		c.members[id] = &copies[len(copies)-1]
	}
	return &c
}

// Identity takes in an identity lease that was added or has changed.
func (r *Roster) Identity(l IdentityLease, now time.Time) {
	m := r.member(l.ID)
	next, changed := r.look(m.identity, l.Holder, l.Renewed, now)
	m.identity = next
	if changed {
		m.suspended = false
	}
}

// IdentityGone says that an identity lease was deleted.
func (r *Roster) IdentityGone(id proxy.ServerID, now time.Time) {
	r.hear(now)
	m := r.member(id)
	m.identity, m.suspended = nil, false
}

// Endpoint takes in an endpoint lease that was added or has changed.
func (r *Roster) Endpoint(l EndpointLease, now time.Time) {
	name := r.holderOf(l)
	r.member(l.ID).latest = name
	m := r.member(name)
	var renewed bool
	m.endpoint, renewed = r.look(m.endpoint, l.Holder, l.Renewed, now)
	m.sighted = m.sighted || renewed
	m.address, m.duration, m.serves, m.suspended = l.Address, l.Duration, l.Serves, false
}

// EndpointGone says that an endpoint lease was deleted.
func (r *Roster) EndpointGone(id proxy.ServerID, now time.Time) {
	r.hear(now)
	m := r.member(id)
	if latest, ok := r.members[m.latest]; ok {
		m = latest // whoever wrote it last: only its holder deletes a lease
	}
	if m.endpoint != nil {
		m.endpoint, m.address, m.serves, m.suspended = nil, "", "", true
	}
}

// Fetched says what a peer was found to serve, as a [Digest]; "" if it could not be found. As long as its lease says something else, each
// renewal of that is told as a change: what was fetched may have been true for a moment that the watch has missed.
func (r *Roster) Fetched(id proxy.ServerID, digest string) {
	if m, ok := r.members[id]; ok {
		m.fetched = digest
	}
}

// Changes returns what is different from what was last returned, sorted by peer. Between calls of the other methods nothing changes.
func (r *Roster) Changes() []proxy.Event {
	var events []proxy.Event
	names := r.names()
	r.settleDuplicates(names)
	for _, id := range names {
		m := r.members[id]
		now := r.join(m)
		if id == r.config.Self {
			now = state{}
		}
		if now.serves == "" { // it does not say for the moment: what it said last is what the next is compared with
			now.serves = m.told.serves
		}
		events = append(events, changes(id, m.told, now)...)
		if m.otherwise(m.told, now) {
			events = append(events, proxy.PeerChanged{ID: id})
		}
		m.told, m.sighted = now, false
		if m.static == "" && m.identity == nil && m.endpoint == nil {
			delete(r.members, id)
		}
	}
	return events
}

func (r *Roster) names() []proxy.ServerID { return slices.Sorted(maps.Keys(r.members)) }

func changes(id proxy.ServerID, before, after state) []proxy.Event {
	var events []proxy.Event
	if after.live && (!before.live || before.incarnation != after.incarnation) {
		events = append(events, proxy.PeerAppeared{ID: id, Incarnation: after.incarnation})
	}
	if before.address != after.address {
		events = append(events, proxy.PeerAddress{ID: id, Address: after.address})
	}
	if before.live && !after.live {
		events = append(events, proxy.PeerGone{ID: id})
	}
	return events
}

// otherwise reports whether a peer that lives tells that it serves something else than it did, or than it was found to.
func (m *member) otherwise(before, after state) bool {
	switch {
	case !after.live || after.serves == "" || after.serves == m.fetched:
		return false
	case before.serves != after.serves:
		return before.serves != "" // else it has appeared just now, and is asked for that
	default:
		return m.sighted && m.fetched != ""
	}
}

// join says what a server's leases amount to.
func (r *Roster) join(m *member) state {
	if m.static != "" {
		return state{live: true, incarnation: m.incarnation(), address: m.static, serves: m.serves}
	}
	if m.endpoint != nil {
		switch silent := r.listened - m.endpoint.seen; {
		case silent < m.duration:
			return state{live: true, incarnation: m.endpoint.holder, address: m.address, serves: m.serves}
		case silent < m.duration+r.config.GoneAfter:
			return state{live: true, incarnation: m.endpoint.holder}
		}
	}
	if m.identity != nil && !m.suspended && (r.config.StaleAfter == 0 || r.listened-m.identity.seen < r.config.StaleAfter) {
		return state{live: true, incarnation: m.identity.holder}
	}
	return state{}
}

// incarnation of a static peer: the leases need not be renewed for it, since it lives all the same.
func (m *member) incarnation() string {
	switch {
	case m.endpoint != nil:
		return m.endpoint.holder
	case m.identity != nil:
		return m.identity.holder
	}
	return ""
}

// look compares a lease with what it was.
func (r *Roster) look(before *renewal, holder string, renewed, now time.Time) (after *renewal, changed bool) {
	switch {
	case before == nil:
		r.hear(now)
		age := min(max(0, now.Sub(renewed)), ancient) // its holder's clock may be ahead; a lease without a time is ancient
		return &renewal{holder: holder, renewed: renewed, seen: r.listened - age}, true
	case before.holder == holder && before.renewed.Equal(renewed):
		return before, false
	default:
		r.hear(now)
		return &renewal{holder: holder, renewed: renewed, seen: r.listened}, true
	}
}

// Heard is when a lease was last seen to change, zero if none ever was.
func (r *Roster) Heard() time.Time { return r.heard }

// hear notes that something was heard.
func (r *Roster) hear(now time.Time) {
	if !r.heard.IsZero() {
		r.listened += min(max(0, now.Sub(r.heard)), hearing)
	}
	if now.After(r.heard) {
		r.heard = now
	}
}

func (r *Roster) member(id proxy.ServerID) *member {
	m, ok := r.members[id]
	if !ok {
		m = &member{}
		r.members[id] = m
	}
	return m
}
