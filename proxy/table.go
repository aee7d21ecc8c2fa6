package proxy

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// Table is what a server knows of itself and its peers at one moment. Make the first with
// [NewTable]. It is immutable: [Table.Observe] returns another. All methods may be called
// concurrently.
type Table struct {
	policy       *Policy
	self         ServerID
	began        time.Time // of the first event that has a time: upstream's periodic workers count from there
	synced       bool
	watchStalled bool // see LeaseWatch
	crashed      string

	local       [roots]document
	localKnown  bool
	routed      [roots]*discovery.Index // what the local server counts as serving until routedUntil, see LocalByInterval
	routedUntil time.Time
	version     string // the local server's

	peers      []*peer // sorted by identity; what they point to is never changed
	extensions extensions
	storage    map[schema.GroupVersionResource][]ServerID

	documents uint64 // see DocumentGeneration
}

// document is one discovery document as it was last fetched.
type document struct {
	groups discovery.Groups
	told   discovery.Groups // as it came: groups may share parts with other documents
	index  *discovery.Index
	at     time.Time // zero: never learnt
	failed string    // why the last fetch failed, "" if it did not

	version string // of the server that served it, see peer.shown
}

func (d document) known() bool { return !d.at.IsZero() }

// peer is what is known of one peer.
type peer struct {
	id          ServerID
	live        bool // its lease exists
	incarnation string
	version     string
	address     string
	direct      bool // the address is that of a server without a proxy, see PeerAddress
	learnt      [roots]document
	before      [roots]document // what the previous process served, until the present one has answered
	ejected     time.Time       // avoided until then
}

// NewTable returns the table of the server self, which knows nothing yet.
func NewTable(p Policy, self ServerID) *Table {
	return &Table{policy: &p, self: self, extensions: extensions{policy: &p}}
}

// Policy is the policy that the table follows.
func (t *Table) Policy() Policy { return *t.policy }

// Self is the identity of the local server.
func (t *Table) Self() ServerID { return t.self }

// Synced reports whether every source has delivered what existed when it started.
func (t *Table) Synced() bool { return t.synced }

// LocalKnown reports whether the table knows what the local server serves.
func (t *Table) LocalKnown() bool { return t.localKnown }

// Local returns what the local server serves, nil if unknown. The result must not be changed.
func (t *Table) Local(root Root) discovery.Groups { return t.local[root].groups }

// Crashed says why such a server would have crashed (see Quirks.CrashOnFailedFetch), "" if not.
func (t *Table) Crashed() string { return t.crashed }

// DocumentGeneration changes whenever the result of [Table.Sources] may have changed.
func (t *Table) DocumentGeneration() uint64 { return t.documents }

// PeerView is what is known of one peer.
type PeerView struct {
	ID           ServerID
	Live         bool // see PeerAppeared and PeerGone
	Incarnation  string
	Version      string       // what its /version said at the last fetch, "" if unknown
	Address      string       // host:port, "" if not known
	Direct       bool         // a server without a proxy is at the address, see PeerAddress
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
	v := PeerView{ID: p.id, Live: p.live, Incarnation: p.incarnation, Version: p.version, Address: p.address, Direct: p.direct, EjectedUntil: p.ejected}
	for r, d := range p.learnt {
		v.Learned[r], v.Failed[r] = d.at, d.failed
	}
	return v
}

// Sources returns, sorted by server, what is merged into a document: what the local server serves
// and what peers serve, without the extensions that must not be taken from peers.
//
// Under ExtensionsExact, extensions that the local server lists too stay in peers' documents. They
// add nothing, and their place in the newest server's document is then the same on every server.
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

// shown is the document that discovery shows. Until a restarted peer has answered, it is what the
// previous process served, in that version's order: otherwise garbage collectors would take those
// resources for deleted. Routing does not use it, because it may be wrong.
func (p *peer) shown(root Root) document {
	if !p.learnt[root].known() {
		return p.before[root]
	}
	shown := p.learnt[root]
	shown.version = p.version
	return shown
}

// contributes reports whether discovery shows anything that the peer serves.
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
