package proxy

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// Event is something that a server learns, for [Table.Observe] and [Store.Observe]. All types of
// events are in this file. The table keeps an event's maps and slices, so the caller must not
// change them afterwards.
type Event interface{ event() }

// PeerAppeared says that a peer is live: it is new, or its identity lease has a new holder.
type PeerAppeared struct {
	ID ServerID
	// Incarnation names the peer's process: it is the holder of the identity lease, which changes
	// when the peer restarts (up to 1.34, only when the lease was deleted meanwhile).
	Incarnation string
}

// PeerGone reports that a peer is gone: its lease was deleted, or expired long ago.
type PeerGone struct{ ID ServerID }

// PeerAddress is the "host:port" of a peer, "" if unknown now. It does not make the peer live.
type PeerAddress struct {
	ID      ServerID
	Address string
	// Direct is true if an API server without a proxy may be at the address. It gets requests like
	// any peer.
	Direct bool
}

// Root is one of the two aggregated discovery documents. It is also an index of arrays of two.
type Root int

const (
	// RootCore is /api, which lists the core group.
	RootCore Root = iota
	// RootGroups is /apis, which lists all other groups.
	RootGroups
	roots
)

func (r Root) Path() string { return [roots]string{"/api", "/apis"}[r] }

// Fetched is the outcome of fetching documents from peers. Under a policy without KeepLastGood, an
// event is a whole round: the table forgets everything that it knows of peers that are not in
// Results.
type Fetched struct {
	Results []FetchResult
	At      time.Time // when the fetch began: a document is as old as the request for it
}

// FetchResult is the answer of one peer.
type FetchResult struct {
	ID ServerID
	// Incarnation is the peer's incarnation when the fetch began. ForgetOnRestart drops answers of
	// earlier incarnations.
	Incarnation string
	// Version is the version at the peer's /version ("v1.37.1"), "" if it could not be fetched.
	Version string
	Roots   [2]RootResult // by Root
}

// RootResult is one document, or why its fetch failed. The zero value is an empty document.
type RootResult struct {
	Groups discovery.Groups
	// Failed is for people and has no addresses; "" if the document was fetched.
	Failed string
}

// LocalFetched is the discovery of the local server itself, the process that has this table.
type LocalFetched struct {
	Version string              // the version at its /version ("v1.37.1"), "" if unknown
	Roots   [2]discovery.Groups // by Root
	At      time.Time
}

// Extensions is the full set of custom resources and aggregated APIs that exist at one time.
type Extensions struct {
	// CustomResources are the served versions of each CustomResourceDefinition, with the plural
	// name.
	CustomResources []schema.GroupVersionResource
	// Created says when the definitions of CustomResources were created. These are whole seconds of
	// another server's clock (metadata.creationTimestamp). No entry: it is not known.
	Created map[schema.GroupVersionResource]time.Time
	// Unserved are the versions that definitions list but do not serve. Upstream counts them too.
	Unserved []schema.GroupVersionResource
	// Aggregated are the group versions of APIServices that name a Service.
	Aggregated []schema.GroupVersion
	At         time.Time
}

// StorageVersions is the full set of StorageVersion objects (1.28 to 1.32). It says which servers
// can decode a resource, and therefore serve it.
type StorageVersions struct {
	Served map[schema.GroupVersionResource][]ServerID
}

// Synced reports that every source has delivered what existed when it started.
type Synced struct{}

// LeaseWatch says whether the watch on the servers' leases has stalled: no lease has changed for so
// long that there may be peers that this server does not know. A policy with FailClosed then does
// not conclude that anything is absent.
type LeaseWatch struct{ Stalled bool }

// PeerFailed says that a peer could not be reached, or ended the connection before it answered. A
// 5xx answer of the peer is not a PeerFailed.
type PeerFailed struct {
	ID ServerID
	At time.Time
}

// PeerAnswered says that a peer answered, with any status.
type PeerAnswered struct{ ID ServerID }

// Tick reports the time to the table, so that exclusions of former extensions end on time; see
// [Table.Wake].
type Tick struct{ At time.Time }

func (PeerAppeared) event()    {}
func (PeerGone) event()        {}
func (PeerAddress) event()     {}
func (Fetched) event()         {}
func (LocalFetched) event()    {}
func (Extensions) event()      {}
func (StorageVersions) event() {}
func (LeaseWatch) event()      {}
func (Synced) event()          {}
func (PeerFailed) event()      {}
func (PeerAnswered) event()    {}
func (Tick) event()            {}
