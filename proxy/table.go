package proxy

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// Table has a server's knowledge of itself and its peers at one moment. Make the first table with
// [NewTable]. A table is immutable: [Table.Observe] returns another table. All methods may be
// called concurrently.
type Table struct {
	policy       *Policy
	self         ServerID
	began        time.Time // the time of the first event that has a time: upstream's periodic workers count from there
	synced       bool
	watchStalled bool // see LeaseWatch
	crashed      string

	local       [roots]document
	localKnown  bool
	routed      [roots]*discovery.Index // under LocalByInterval, routing uses it in place of local until routedUntil
	routedUntil time.Time
	version     string // the version of the local server

	peers      []*peer // sorted by identity; the values behind the pointers are never changed
	extensions extensions
	nativeHere []Resource // as peer.native, of the local server
	storage    map[schema.GroupVersionResource][]ServerID

	documents uint64 // see DocumentGeneration
}

// document is one discovery document as it was last fetched.
type document struct {
	groups discovery.Groups
	index  *discovery.Index
	at     time.Time // zero: never learnt
	since  time.Time // when this content was first learnt
	// earlier are the contents before that, the latest first: those of the last nativeAfter, and one
	// that is older.
	earlier []content
	failed  string // why the last fetch failed, "" if it did not

	version string // the version of the server that served it, see peer.shown
}

// content is what a document listed before it changed.
type content struct {
	index *discovery.Index
	since time.Time // when it was first learnt
}

func (d *document) known() bool { return !d.at.IsZero() }

// follow makes d, which was first learnt at d.since, the next content after old.
func (d *document) follow(old *document) {
	if !old.known() {
		return
	}
	d.earlier = append(d.earlier, content{old.index, old.since})
	for _, c := range old.earlier {
		if last := d.earlier[len(d.earlier)-1]; last.since.Add(nativeAfter).Before(d.since) {
			return
		}
		d.earlier = append(d.earlier, c)
	}
}

// forgetEarlier forgets the earlier contents if the present one is old enough to count alone.
func (d *document) forgetEarlier() {
	if d.since.Add(nativeAfter).Before(d.at) {
		d.earlier = nil
	}
}

// listedSince returns since when all contents have listed a resource of /apis; ok is false if the
// document does not list it.
func (d *document) listedSince(r Resource) (since time.Time, ok bool) {
	if !d.known() || !d.index.Resource(r.Group, r.Version, r.Resource, "") {
		return since, false
	}
	since = d.since
	for _, c := range d.earlier {
		if !c.index.Resource(r.Group, r.Version, r.Resource, "") {
			break
		}
		since = c.since
	}
	return since, true
}

// peer has the table's knowledge of one peer.
type peer struct {
	id          ServerID
	live        bool // its lease exists
	incarnation string
	version     string
	address     string
	direct      bool // a server without a proxy is at the address, see PeerAddress
	learnt      [roots]document
	before      [roots]document // the documents of the previous process, until the present process has answered
	ejected     time.Time       // the peer is avoided until then
	// native are resources that the process listed before their definition was seen, so they are built
	// in there. They last as long as its documents.
	native []Resource
}

// NewTable returns the table of the server self. The table knows nothing yet.
func NewTable(p Policy, self ServerID) *Table {
	return &Table{policy: &p, self: self, extensions: extensions{policy: &p}}
}

// Policy is the policy that the table follows.
func (t *Table) Policy() Policy { return *t.policy }

// Self is the identity of the local server.
func (t *Table) Self() ServerID { return t.self }

// Synced reports whether every source has delivered what existed when it started.
func (t *Table) Synced() bool { return t.synced }

// LocalKnown reports whether the table knows the resources of the local server.
func (t *Table) LocalKnown() bool { return t.localKnown }

// Crashed says why a server with this policy would have crashed (see Quirks.CrashOnFailedFetch); ""
// if it would not.
func (t *Table) Crashed() string { return t.crashed }

// DocumentGeneration changes whenever the result of [Table.Sources] or [Table.Incomplete] may have
// changed.
func (t *Table) DocumentGeneration() uint64 { return t.documents }

// PeerView has a table's knowledge of one peer.
type PeerView struct {
	ID           ServerID
	Live         bool // see PeerAppeared and PeerGone
	Incarnation  string
	Version      string       // the version at its /version at the last fetch, "" if unknown
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

// Peer returns one peer; false if no peer has this identity.
func (t *Table) Peer(id ServerID) (PeerView, bool) {
	i, ok := t.find(id)
	if !ok {
		return PeerView{}, false
	}
	return t.peers[i].view(), true
}

func (p *peer) view() PeerView {
	v := PeerView{ID: p.id, Live: p.live, Incarnation: p.incarnation, Version: p.version, Address: p.address, Direct: p.direct,
		EjectedUntil: p.ejected}
	for r, d := range p.learnt {
		v.Learned[r], v.Failed[r] = d.at, d.failed
	}
	return v
}

// Sources returns the parts of which a merged document is made, sorted by server: the groups of the
// local server and of its peers, without the extensions that must not be taken from peers.
//
// Under ExtensionsExact, an extension that the local server lists too stays in the peers'
// documents. It adds nothing to the merged document. But its place in the newest server's document
// decides the order, and the order is then the same on every server.
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
			one := Resource{Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource}
			return t.extensions.exclude(one, shown.at) && !t.foreign(one) && !t.native(p, &shown, one)
		})
		sources = append(sources, discovery.Source{Server: string(p.id), Version: shown.version, Groups: groups})
	}
	slices.SortFunc(sources, func(a, b discovery.Source) int { return cmp.Compare(a.Server, b.Server) })
	return sources
}

// shown is the document that discovery shows. Until a restarted peer has answered, this is the
// document of the previous process, in the order of the previous process's version. Otherwise
// garbage collectors would take the peer's resources for deleted. Routing does not use this
// document, because it may be wrong.
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

// listed reports whether a document lists the group, version or resource of a request.
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

// find returns the position in the sorted peers at which the peer is, or would be inserted.
func (t *Table) find(id ServerID) (int, bool) {
	return slices.BinarySearchFunc(t.peers, id, func(p *peer, id ServerID) int { return cmp.Compare(p.id, id) })
}
