package peers

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/skewproof/skewproof/proxy"
)

const (
	// goneAfter is how long a server whose key has expired counts after it last renewed its identity
	// lease. Upstream's identity lease is valid for this time.
	goneAfter = time.Hour

	// maxAge is the age of a lease that was never renewed. More could overflow.
	maxAge = 100 * 365 * 24 * time.Hour

	// maxGap is how much of the time between two changes counts. Every server with this proxy renews
	// its key within this time.
	maxGap = renewEvery

	// lapses is the least age at which a key that is gone has expired. A younger key was withdrawn: a
	// kube-apiserver renews its key every 10 s.
	lapses = 12500 * time.Millisecond
)

// RosterConfig says which servers a [Roster] is for.
type RosterConfig struct {
	// Self is the local server. It is not a peer, but changes of its lease and key show that the
	// watches work.
	Self proxy.ServerID
	// Address is the address that the local server publishes. A key of Self with another address
	// belongs to a second server. Empty: every key of Self is its own.
	Address string
	// StaleAfter is how long a server without a key counts after it last renewed its identity lease
	// (see [proxy.KnowledgePolicy]). Zero: every identity lease is a live server, for ever.
	StaleAfter time.Duration
	// Leaving is how long a peer that has withdrawn its key keeps its address; see rule (h). Zero:
	// not at all.
	Leaving time.Duration
}

// Roster finds out which peers are live and where, by the rules in the package's comment. It is
// pure: the time is an argument. Make it with [NewRoster]. It is not safe for concurrent use.
type Roster struct {
	config  RosterConfig
	members map[proxy.ServerID]*member
	direct  map[proxy.ServerID]string // see SetDirect; the map is never changed

	lastChange time.Time     // when the last change was seen
	observed   time.Duration // the sum of the time that counts, see rule (e)
}

// member is the knowledge of one server, and the state that was last reported for it.
type member struct {
	identity    *renewal
	incarnation string // the last holder of the identity lease
	host        string // as the identity lease says
	key         *published
	marked      bool
	proof       proof
	lapsed      time.Duration // Roster.observed when the key that has expired should have been renewed, 0 if none has

	// latest is the server that last wrote the key: this server, or a second one with the same
	// identity.
	latest proxy.ServerID

	// suspended: the key was withdrawn, and the identity lease was not renewed since (rule b).
	suspended bool
	version   string // the server's version at the last fetch
	left      leaving

	reported state
}

// proof is what shows that an identity lease is a server's, and not one that somebody made up.
type proof int

const (
	unproven   proof = iota
	identified       // by its certificate, or by a key that it has withdrawn: while the lease is renewed
	keyed            // by its key: while the lease exists
)

// renewal is the last seen change of an identity lease.
type renewal struct {
	holder  string
	renewed time.Time     // the time in the lease
	seen    time.Duration // the value of Roster.observed at that time; negative if the lease was old at first sight
}

// published is a key as it was last seen. It is never changed.
type published struct {
	address string
	renewal int64
	seen    time.Duration // the value of Roster.observed at that time
	at      time.Time     // the same by the clock
	renewed bool          // a renewal was seen, not only the key
}

// state is the reported state of a peer. The zero value is a peer that is not live.
type state struct {
	live        bool
	incarnation string
	address     string
	direct      bool // see proxy.PeerAddress
}

// NewRoster returns a roster without peers.
func NewRoster(config RosterConfig) *Roster {
	return &Roster{config: config, members: map[proxy.ServerID]*member{}}
}

// Clone returns a roster in the same state. The two share nothing.
func (r *Roster) Clone() *Roster {
	c := *r
	c.members = make(map[proxy.ServerID]*member, len(r.members))
	copies := make([]member, 0, len(r.members))
	for id, m := range r.members { // in any order
		copies = append(copies, *m) // renewals and keys are never changed
		c.members[id] = &copies[len(copies)-1]
	}
	return &c
}

// Identity observes an identity lease that was added or has changed.
func (r *Roster) Identity(l IdentityLease, now time.Time) {
	m := r.member(l.ID)
	next, changed := r.update(m.identity, l.Holder, l.Renewed, now)
	m.identity, m.host, m.incarnation = next, l.Host, l.Holder
	if changed {
		if m.suspended || l.Holder != m.left.holder { // another process
			m.left = leaving{holder: m.left.holder}
		}
		m.suspended = false
	}
}

// IdentityGone observes that an identity lease was deleted.
func (r *Roster) IdentityGone(id proxy.ServerID, now time.Time) {
	r.noteChange(now)
	m := r.member(id)
	m.identity, m.suspended = nil, false
	if m.key == nil {
		m.proof = unproven
		if !m.left.withdrawn {
			m.left = leaving{withdrawn: true, at: r.observed, since: now}
		}
	}
}

// Key observes a server's key that was added or has changed.
func (r *Roster) Key(k Key, now time.Time) {
	name := r.holderOf(k)
	r.member(k.ID).latest = name
	m := r.member(name)
	if before := m.key; before == nil || before.renewal != k.Renewal || before.address != k.Address {
		r.noteChange(now)
		m.key = &published{address: k.Address, renewal: k.Renewal, seen: r.observed, at: now, renewed: before != nil}
	}
	m.proof, m.lapsed, m.suspended, m.left = keyed, 0, false, leaving{}
}

// Marked observes that a server's mark was added, or is gone. The mark shows that the server has
// written a key, even if the key has expired before it could be seen here.
func (r *Roster) Marked(id proxy.ServerID, marked bool) { r.member(id).marked = marked }

// KeyGone observes that a server's key was removed, or has expired.
func (r *Roster) KeyGone(id proxy.ServerID, now time.Time) {
	r.noteChange(now)
	m := r.member(id)
	if latest, ok := r.members[m.latest]; ok {
		m = latest // only the last writer removes the key
	}
	if m.key != nil {
		r.leave(m, now)
	}
}

// Fetched observes that a peer was asked what it serves. version is the version that the peer
// reported, "" if it reported none. refused is true if the peer refused or reset a connection. It
// reports whether this ends rule (h).
func (r *Roster) Fetched(id proxy.ServerID, version string, refused bool, now time.Time) (left bool) {
	m, ok := r.members[id]
	if !ok {
		return false
	}
	m.version = cmp.Or(version, m.version)
	left = m.left.withdrawn && !m.left.ended && refused && now.Sub(m.left.since) >= stillCounts
	m.left.ended = m.left.ended || left
	return left
}

// Changes returns the events since the last call, sorted by peer.
func (r *Roster) Changes() []proxy.Event {
	var events []proxy.Event
	names := r.names()
	r.settleDuplicates(names)
	for _, id := range names {
		m := r.members[id]
		now := r.join(id, m)
		if id == r.config.Self {
			now = state{}
		}
		events = append(events, changes(id, m.reported, now)...)
		m.reported = now
		if m.identity == nil && m.key == nil && !m.marked && !now.live {
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
	if before.address != after.address || before.direct != after.direct {
		events = append(events, proxy.PeerAddress{ID: id, Address: after.address, Direct: after.direct})
	}
	if before.live && !after.live {
		events = append(events, proxy.PeerGone{ID: id})
	}
	return events
}

// join derives the state of a server from its lease and its key.
func (r *Roster) join(id proxy.ServerID, m *member) state {
	s := state{live: true, incarnation: m.incarnation}
	if m.key != nil && !r.expired(m) {
		s.address = m.key.address
		return s
	}
	if address := r.direct[id]; address != "" && r.lacksKey(m) {
		m.proof = max(m.proof, identified)
		s.address, s.direct = address, true
	}
	s.live = r.counts(m)
	return r.lingering(m, s)
}

// counts reports whether the identity lease shows that a server without a valid key lives.
func (r *Roster) counts(m *member) bool {
	switch {
	case r.config.StaleAfter == 0 || m.proof == identified:
		return r.renews(m)
	case m.proof == keyed || m.marked:
		return m.identity != nil && !m.suspended && r.observed-m.identity.seen < goneAfter
	}
	return false
}

// renews reports whether some process renews the identity lease.
func (r *Roster) renews(m *member) bool {
	return m.identity != nil && !m.suspended && (r.config.StaleAfter == 0 || r.observed-m.identity.seen < r.config.StaleAfter)
}

// update compares an identity lease with its last seen change.
func (r *Roster) update(before *renewal, holder string, renewed, now time.Time) (after *renewal, changed bool) {
	switch {
	case before == nil:
		r.noteChange(now)
		age := min(max(0, now.Sub(renewed)), maxAge) // the holder's clock may be ahead; a lease without a time is very old
		return &renewal{holder: holder, renewed: renewed, seen: r.observed - age}, true
	case before.holder == holder && before.renewed.Equal(renewed):
		return before, false
	default:
		r.noteChange(now)
		return &renewal{holder: holder, renewed: renewed, seen: r.observed}, true
	}
}

// LastChange returns when the last change of a lease or a key was seen, zero if none was seen.
func (r *Roster) LastChange() time.Time { return r.lastChange }

// noteChange advances the observed time.
func (r *Roster) noteChange(now time.Time) {
	if !r.lastChange.IsZero() {
		r.observed += min(max(0, now.Sub(r.lastChange)), maxGap)
	}
	if now.After(r.lastChange) {
		r.lastChange = now
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
