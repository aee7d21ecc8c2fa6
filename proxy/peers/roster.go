package peers

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/skewproof/skewproof/proxy"
)

const (
	defaultGoneAfter = time.Hour // upstream's identity lease is valid for this time

	// maxAge is the age of a lease that was never renewed. More could overflow.
	maxAge = 100 * 365 * 24 * time.Hour

	// maxGap is how much of the time between two lease changes counts. Every server renews its
	// lease within this time.
	maxGap = renewEvery
)

// RosterConfig says which servers a [Roster] is for.
type RosterConfig struct {
	// Self is the local server. It is not a peer, but changes of its leases show that the watch
	// works.
	Self proxy.ServerID
	// Address is the address that the local server publishes. An endpoint lease of Self with
	// another address belongs to a second server. Empty: every lease of Self is its own.
	Address string
	// Advertised uses addresses in identity leases for servers without a proxy; see rule (g). A
	// kube-apiserver whose own Mixed Version Proxy is on writes its address there.
	Advertised bool
	// StaleAfter is how long an identity lease counts after its last renewal (see
	// [proxy.KnowledgePolicy]). Zero: for ever.
	StaleAfter time.Duration
	// Leaving is how long a peer that has withdrawn its leases keeps its address; see rule (h). Zero:
	// not at all.
	Leaving time.Duration
	// GoneAfter is how long an endpoint lease keeps its peer live after it has expired. Zero: an
	// hour.
	GoneAfter time.Duration
}

// Roster finds out which peers are live and where, by the rules in the package's comment. It is
// pure: the time is an argument. Make it with [NewRoster]. It is not safe for concurrent use.
type Roster struct {
	config  RosterConfig
	members map[proxy.ServerID]*member
	direct  map[proxy.ServerID]string // see SetDirect; the map is never changed

	lastChange time.Time     // when the last change of a lease was seen
	observed   time.Duration // the sum of the time that counts, see rule (e)
}

// member is the knowledge of one server, and the state that was last reported for it.
type member struct {
	identity     *renewal
	host, own    string // host name and address, as the identity lease says
	endpoint     *renewal
	address      string        // as the endpoint lease says
	duration     time.Duration // of the endpoint lease
	serves       string        // as the endpoint lease says
	fetched      string        // the Digest of the last fetch from the server, "" if the fetch failed
	renewedSince bool          // the endpoint lease was renewed since the last report

	// latest is the server that last wrote the endpoint lease: this server, or a second one with
	// the same identity.
	latest proxy.ServerID

	// suspended: the endpoint lease was deleted, and the identity lease was not renewed since (rule
	// b).
	suspended bool
	version   string // the server's version at the last fetch
	left      leaving

	reported state
}

// renewal is the last seen change of one lease.
type renewal struct {
	holder  string
	renewed time.Time     // the time in the lease
	seen    time.Duration // the value of Roster.observed at that time; negative if the lease was old at first sight
}

// state is the reported state of a peer. The zero value is a peer that is not live.
type state struct {
	live        bool
	incarnation string
	address     string
	direct      bool // see proxy.PeerAddress
	serves      string
}

// NewRoster returns a roster without peers.
func NewRoster(config RosterConfig) *Roster {
	if config.GoneAfter == 0 {
		config.GoneAfter = defaultGoneAfter
	}
	return &Roster{config: config, members: map[proxy.ServerID]*member{}}
}

// Clone returns a roster in the same state. The two share nothing.
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

// Identity observes an identity lease that was added or has changed.
func (r *Roster) Identity(l IdentityLease, now time.Time) {
	m := r.member(l.ID)
	next, changed := r.update(m.identity, l.Holder, l.Renewed, now)
	m.identity, m.host, m.own = next, l.Host, l.Address
	if changed {
		if m.suspended || l.Holder != m.left.holder { // another process
			m.left = leaving{incarnation: m.left.incarnation, holder: m.left.holder}
		}
		m.suspended = false
	}
}

// IdentityGone observes that an identity lease was deleted.
func (r *Roster) IdentityGone(id proxy.ServerID, now time.Time) {
	r.noteChange(now)
	m := r.member(id)
	m.identity, m.suspended = nil, false
	if m.endpoint == nil && !m.left.withdrawn {
		m.left = leaving{withdrawn: true, at: r.observed}
	}
}

// Endpoint observes an endpoint lease that was added or has changed.
func (r *Roster) Endpoint(l EndpointLease, now time.Time) {
	name := r.holderOf(l)
	r.member(l.ID).latest = name
	m := r.member(name)
	var renewed bool
	m.endpoint, renewed = r.update(m.endpoint, l.Holder, l.Renewed, now)
	m.renewedSince = m.renewedSince || renewed
	m.address, m.duration, m.serves, m.suspended, m.left = l.Address, l.Duration, l.Serves, false, leaving{}
}

// EndpointGone observes that an endpoint lease was deleted.
func (r *Roster) EndpointGone(id proxy.ServerID, now time.Time) {
	r.noteChange(now)
	m := r.member(id)
	if latest, ok := r.members[m.latest]; ok {
		m = latest // only the last writer deletes the lease
	}
	if m.endpoint != nil {
		m.leave(r.observed)
	}
}

// Fetched observes the [Digest] of the documents that were fetched from a peer, "" after a failure.
// version is the version that the peer reported, "" if it reported none. While the peer's lease has
// another digest, each renewal is reported as a change, because the fetch may have seen a temporary
// state. refused is true if the peer refused or reset a connection. It reports whether this ends
// rule (h).
func (r *Roster) Fetched(id proxy.ServerID, digest, version string, refused bool) (left bool) {
	m, ok := r.members[id]
	if !ok {
		return false
	}
	m.fetched, m.version = digest, cmp.Or(version, m.version)
	left = m.left.withdrawn && !m.left.ended && refused
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
		if now.serves == "" { // keep the last digest, because the next one is compared with it
			now.serves = m.reported.serves
		}
		events = append(events, changes(id, m.reported, now)...)
		if m.servesSomethingElse(m.reported, now) {
			events = append(events, proxy.PeerChanged{ID: id})
		}
		m.reported, m.renewedSince = now, false
		if m.identity == nil && m.endpoint == nil && !now.live {
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

// servesSomethingElse reports whether a live peer has another digest than before, or another one
// than its fetched documents.
func (m *member) servesSomethingElse(before, after state) bool {
	switch {
	case !after.live || after.serves == "" || after.serves == m.fetched:
		return false
	case before.serves != after.serves:
		return before.serves != "" // if it was empty, the peer has just appeared and is asked anyway
	default:
		return m.renewedSince && m.fetched != ""
	}
}

// join derives the state of a server from its leases.
func (r *Roster) join(id proxy.ServerID, m *member) state {
	if m.endpoint != nil {
		switch silent := r.observed - m.endpoint.seen; {
		case silent < m.duration:
			return state{live: true, incarnation: m.endpoint.holder, address: m.address, serves: m.serves}
		case silent < m.duration+r.config.GoneAfter && r.outlived(m):
			return r.directly(id, m, m.endpoint.holder)
		case silent < m.duration+r.config.GoneAfter:
			return state{live: true, incarnation: m.endpoint.holder}
		}
	}
	if r.identityCounts(m) {
		return r.lingering(m, r.directly(id, m, m.alone()))
	}
	return r.lingering(m, state{incarnation: m.reported.incarnation})
}

// update compares a lease with its last seen change.
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

// LastChange returns when the last change of a lease was seen, zero if none was seen.
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
