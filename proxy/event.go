package proxy

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// Event is something that a server learns, for [Table.Observe] and [Store.Observe]. The types of this file are all there are. The
// table keeps the maps and slices of an event, so they must not be changed afterwards.
type Event interface{ event() }

// PeerAppeared says that a peer is live: its lease was seen for the first time, or has a new holder. The same incarnation again
// changes nothing.
type PeerAppeared struct {
	ID ServerID
	// Incarnation names the process of the peer and changes when it restarts: the holder identity of the lease.
	Incarnation string
}

// PeerGone says that a peer has left: its lease was deleted, or expired long ago.
type PeerGone struct{ ID ServerID }

// PeerChanged says that a peer publishes another digest of what it serves than before, or than was fetched. The table keeps what it
// knows of the peer; the event is a reason to ask the peer again (see FetchingPolicy.WhenTold).
type PeerChanged struct{ ID ServerID }

// PeerAddress says at which "host:port" a peer is reached; "" means that the address is no longer known. It does not make a peer
// live.
type PeerAddress struct {
	ID      ServerID
	Address string
}

// Root is one of the two aggregated discovery documents. It indexes arrays of two, such as those of [LocalFetched] and
// [FetchResult].
type Root int

const (
	// RootCore is /api, which lists the core group.
	RootCore Root = iota
	// RootGroups is /apis, which lists all other groups.
	RootGroups
	roots
)

// Path is the URL path of the document.
func (r Root) Path() string { return [roots]string{"/api", "/apis"}[r] }

// Fetched is the outcome of fetching the documents of some peers. Under a policy without KeepLastGood it is the outcome of a whole
// round: the table forgets what it knows of peers that are not in Results.
type Fetched struct {
	Results []FetchResult
	At      time.Time // when the fetch began: a document is as old as the request for it
}

// FetchResult is what one peer answered.
type FetchResult struct {
	ID ServerID
	// Incarnation is that of the peer when the fetch began. Under ForgetOnRestart, the answer of an earlier incarnation is dropped.
	Incarnation string
	// Version is what the peer's /version says ("v1.37.1"), "" if that could not be fetched.
	Version string
	Roots   [2]RootResult // by Root
}

// RootResult is one document, or why it could not be fetched. The zero value is an empty document.
type RootResult struct {
	Groups discovery.Groups
	// Failed says, for people and without addresses, why the document could not be fetched; "" if it was.
	Failed string
}

// LocalFetched is what the local server itself serves.
type LocalFetched struct {
	Version string              // what its /version says ("v1.37.1"), "" if unknown
	Roots   [2]discovery.Groups // by Root
	At      time.Time
}

// LocalLost says that the local server cannot be asked. It may come back as another version, so it is unknown what it serves.
type LocalLost struct{ At time.Time }

// Extensions is the complete set of custom resources and aggregated APIs that the local server serves at this time.
type Extensions struct {
	// CustomResources are the group, version and plural name of each served version of each CustomResourceDefinition.
	CustomResources []schema.GroupVersionResource
	// Unserved are the versions that a CustomResourceDefinition lists but does not serve. Upstream counts them as well.
	Unserved []schema.GroupVersionResource
	// Aggregated are the group versions of APIServices that name a Service.
	Aggregated []schema.GroupVersion
	At         time.Time
}

// StorageVersions is the complete set of StorageVersion objects (1.28 to 1.32): which servers can decode, and so serve, a resource.
type StorageVersions struct {
	Served map[schema.GroupVersionResource][]ServerID
}

// Synced says that every source has delivered what existed when it started.
type Synced struct{}

// LeaseWatch says whether the watch on the servers' leases has stalled: no lease has changed for so long that there may be a peer
// that the local server does not know. While the watch has stalled, a policy with FailClosed takes nothing for absent.
type LeaseWatch struct{ Stalled bool }

// PeerFailed says that a peer could not be reached, or ended the connection before it answered. It is for what this server itself
// saw, never for a 5xx of the peer.
type PeerFailed struct {
	ID ServerID
	At time.Time
}

// PeerAnswered says that a peer has answered, with whatever status.
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
