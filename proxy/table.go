package proxy

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// Table is what a server knows of itself and of its peers at one moment. It is immutable: [Table.Observe] makes another. All
// methods may be called concurrently.
type Table struct {
	policy       *Policy
	self         ServerID
	began        time.Time // of the first event that has a time: upstream's periodic workers count from there
	synced       bool
	watchStalled bool // see LeaseWatch
	crashed      string

	local       [roots]document
	localKnown  bool
	routed      [roots]*discovery.Index // what the local server is taken to serve until routedUntil, see LocalByInterval
	routedUntil time.Time
	version     string // the local server's

	peers      []*peer // sorted by identity; what they point to is never changed
	extensions extensions
	storage    map[schema.GroupVersionResource][]ServerID

	documents uint64 // see DocumentGeneration
}

// document is one discovery document as it was last learnt.
type document struct {
	groups discovery.Groups
	told   discovery.Groups // as it came: groups may be made of the parts of others
	index  *discovery.Index
	at     time.Time // zero: never learnt
	failed string    // why the last fetch failed, "" if it did not

	version string // of the server that told it, see peer.shown
}

func (d document) known() bool { return !d.at.IsZero() }

// peer is what is known of one peer.
type peer struct {
	id          ServerID
	live        bool // its lease exists
	incarnation string
	version     string
	address     string
	learnt      [roots]document
	before      [roots]document // what the process before this one served, until this one has answered
	ejected     time.Time       // avoided until then
}

// NewTable returns the table of a server that knows nothing yet.
func NewTable(p Policy, self ServerID) *Table {
	return &Table{policy: &p, self: self, extensions: extensions{policy: &p}}
}

// Policy is the policy that the table follows.
func (t *Table) Policy() Policy { return *t.policy }

// Self is the identity of the local server.
func (t *Table) Self() ServerID { return t.self }

// Synced reports whether every source has delivered what existed when it started.
func (t *Table) Synced() bool { return t.synced }

// LocalKnown reports whether it is known what the local server serves.
func (t *Table) LocalKnown() bool { return t.localKnown }

// Local returns what the local server serves by itself, nil while that is not known. It must not be changed.
func (t *Table) Local(root Root) discovery.Groups { return t.local[root].groups }

// Crashed says of what a server of this policy would have died, "" if it lives (see Quirks.CrashOnFailedFetch).
func (t *Table) Crashed() string { return t.crashed }

// DocumentGeneration changes whenever [Table.Sources] may have changed, so a document that was made for one generation is good as
// long as the generation is the same.
func (t *Table) DocumentGeneration() uint64 { return t.documents }

// PeerView is what is known of a peer, for people, metrics and schedules.
type PeerView struct {
	ID           ServerID
	Live         bool // its lease exists
	Incarnation  string
	Version      string       // as it told at the last fetch, "" if it has not
	Address      string       // host:port, "" if not known
	Learned      [2]time.Time // by Root: when the document was last fetched, zero if never
	Failed       [2]string    // by Root: why the last fetch failed, "" if it did not
	EjectedUntil time.Time    // zero if it is not avoided
}

// Peers returns all peers, sorted by identity.
func (t *Table) Peers() []PeerView {
	views := make([]PeerView, len(t.peers))
	for i, p := range t.peers {
		views[i] = p.view()
	}
	return views
}

// Peer returns one peer, false if there is none of that identity.
func (t *Table) Peer(id ServerID) (PeerView, bool) {
	i, ok := t.find(id)
	if !ok {
		return PeerView{}, false
	}
	return t.peers[i].view(), true
}

func (p *peer) view() PeerView {
	v := PeerView{ID: p.id, Live: p.live, Incarnation: p.incarnation, Version: p.version, Address: p.address, EjectedUntil: p.ejected}
	for r, d := range p.learnt {
		v.Learned[r], v.Failed[r] = d.at, d.failed
	}
	return v
}

// Sources returns what is to be merged into a document: what the local server serves and what peers are believed to serve, without
// the extensions that must not be taken from peers, sorted by server.
//
// Under ExtensionsExact an extension that the local server lists is left in peers' documents too. It adds nothing to the union, and where
// the newest server puts it decides its place on every server alike.
func (t *Table) Sources(root Root) []discovery.Source {
	sources := make([]discovery.Source, 0, len(t.peers)+1)
	sources = append(sources, discovery.Source{Server: string(t.self), Version: t.version, Local: true, Groups: t.local[root].groups})
	for _, p := range t.peers {
		if p.id == t.self || !p.contributes() {
			continue
		}
		shown := p.shown(root)
		groups := t.extensions.leaveOut(shown.groups, func(gvr schema.GroupVersionResource) bool {
			if t.policy.Knowledge.Extensions == ExtensionsExact && t.local[root].index.Resource(gvr.Group, gvr.Version, gvr.Resource, "") {
				return false
			}
			return t.extensions.exclude(Resource{Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource}, shown.at)
		})
		sources = append(sources, discovery.Source{Server: string(p.id), Version: shown.version, Groups: groups})
	}
	slices.SortFunc(sources, func(a, b discovery.Source) int { return cmp.Compare(a.Server, b.Server) })
	return sources
}

// shown is the document that discovery shows. To route by what the process before served would be to guess; to leave it out of
// discovery would tell garbage collectors that it is gone, for as long as the new one has not answered. The version is that of the process
// that told it: the order of groups depends on it, and is to stay as well.
func (p *peer) shown(root Root) document {
	if !p.learnt[root].known() {
		return p.before[root]
	}
	shown := p.learnt[root]
	shown.version = p.version
	return shown
}

// contributes reports whether discovery shows anything of the peer.
func (p *peer) contributes() bool {
	for root := range roots {
		if len(p.shown(root).groups) > 0 {
			return true
		}
	}
	return false
}

// listed reports whether a document lists what a request is about.
func listed(x *discovery.Index, r Request, subresources bool) bool {
	switch {
	case r.Kind == KindDiscovery && r.Resource.Version == "":
		return x.Group(r.Resource.Group)
	case r.Kind == KindDiscovery:
		return x.Version(r.Resource.Group, r.Resource.Version)
	case subresources:
		return x.Resource(r.Resource.Group, r.Resource.Version, r.Resource.Resource, r.Resource.Subresource)
	default:
		return x.Resource(r.Resource.Group, r.Resource.Version, r.Resource.Resource, "")
	}
}

// find returns where the peer is, or would be, in the sorted peers.
func (t *Table) find(id ServerID) (int, bool) {
	return slices.BinarySearchFunc(t.peers, id, func(p *peer, id ServerID) int { return cmp.Compare(p.id, id) })
}
