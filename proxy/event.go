package proxy

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// Event is something that a server learns, for [Table.Observe] and [Store.Observe]. This file has
// all types. The table keeps an event's maps and slices, so they must not be changed afterwards.
type Event interface{ event() }

// PeerAppeared says that a peer is live: its lease is new or has a new holder.
type PeerAppeared struct {
	ID ServerID
	// Incarnation names the peer's process, and changes when it restarts: the lease's holder identity.
	Incarnation string
}

// PeerGone says that a peer has left: its lease was deleted, or expired long ago.
type PeerGone struct{ ID ServerID }

// PeerChanged says that a peer publishes another digest of what it serves than before, or than was
// fetched. It changes nothing in the table, but the peer is asked again (FetchingPolicy.WhenTold).
type PeerChanged struct{ ID ServerID }

// PeerAddress is the "host:port" of a peer, "" if unknown now. It does not make the peer live.
type PeerAddress struct {
	ID      ServerID
	Address string
	// Direct says that the address is that of an API server without a proxy of its own. It is passed
	// requests like any peer, but cannot tell when it begins to serve something else.
	Direct bool
}

// Root is one of the two aggregated discovery documents, and the index of arrays of two.
type Root int

const (
	// RootCore is /api, which lists the core group.
	RootCore Root = iota
	// RootGroups is /apis, which lists all other groups.
	RootGroups
	roots
)

func (r Root) Path() string { return [roots]string{"/api", "/apis"}[r] }

// Fetched is the outcome of fetching documents from peers. Under a policy without KeepLastGood it
// is a whole round: the table forgets what it knows of peers that are not in Results.
type Fetched struct {
	Results []FetchResult
	At      time.Time // when the fetch began: a document is as old as the request for it
}

// FetchResult is what one peer answered.
type FetchResult struct {
	ID ServerID
	// Incarnation is the peer's when the fetch began. ForgetOnRestart drops answers of earlier ones.
	Incarnation string
	// Version is what the peer's /version says ("v1.37.1"), "" if it could not be fetched.
	Version string
	Roots   [2]RootResult // by Root
}

// RootResult is one document, or why its fetch failed. The zero value is an empty document.
type RootResult struct {
	Groups discovery.Groups
	// Failed is for people and has no addresses; "" if the document was fetched.
	Failed string
}

// LocalFetched is what the local server itself serves.
type LocalFetched struct {
	Version string              // what its /version says ("v1.37.1"), "" if unknown
	Roots   [2]discovery.Groups // by Root
	At      time.Time
}

// LocalLost says that the local server cannot be asked. It may return as another version.
type LocalLost struct{ At time.Time }

// Extensions is the full set of custom resources and aggregated APIs that exist at a time.
type Extensions struct {
	// CustomResources are the served versions of each CustomResourceDefinition, with the plural name.
	CustomResources []schema.GroupVersionResource
	// Unserved are the versions that definitions list but do not serve. Upstream counts them too.
	Unserved []schema.GroupVersionResource
	// Aggregated are the group versions of APIServices that name a Service.
	Aggregated []schema.GroupVersion
	At         time.Time
}

// StorageVersions is the full set of StorageVersion objects (1.28 to 1.32): which servers can
// decode, and so serve, a resource.
type StorageVersions struct {
	Served map[schema.GroupVersionResource][]ServerID
}

// Synced says that every source has delivered what existed when it started.
type Synced struct{}

// LeaseWatch says whether the watch on the servers' leases has stalled: no lease has changed for so
// long that peers may be unknown. A policy with FailClosed then takes nothing for absent.
type LeaseWatch struct{ Stalled bool }

// PeerFailed says that a peer could not be reached, or ended the connection before it answered. A
// 5xx of the peer is no PeerFailed.
type PeerFailed struct {
	ID ServerID
	At time.Time
}

// PeerAnswered says that a peer answered, with any status.
type PeerAnswered struct{ ID ServerID }

// Tick says what time it is, so that exclusions of former extensions end on time; see [Table.Wake].
type Tick struct{ At time.Time }

func (PeerAppeared) event()    {}
func (PeerGone) event()        {}
func (PeerAddress) event()     {}
func (PeerChanged) event()     {}
func (Fetched) event()         {}
func (LocalFetched) event()    {}
func (LocalLost) event()       {}
func (Extensions) event()      {}
func (StorageVersions) event() {}
func (LeaseWatch) event()      {}
func (Synced) event()          {}
func (PeerFailed) event()      {}
func (PeerAnswered) event()    {}
func (Tick) event()            {}
