package proxy

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// Event is something learnt, for [Table.Observe]. The types of this file are all there are.
type Event interface{ event() }

// PeerAppeared says that a peer lives: its identity lease was seen for the first time, or with another holder. The same
// incarnation again changes nothing.
type PeerAppeared struct {
	ID ServerID
	// Incarnation changes when the peer's process does: the lease's holder identity.
	Incarnation string
}

// PeerGone says that a peer has left: its lease was deleted, or has long expired.
type PeerGone struct{ ID ServerID }

// PeerChanged says that a peer serves something else than it did, or than it was found to serve, as it tells itself. The table
// keeps what it knows of it: it is an occasion to ask (see FetchingPolicy.WhenTold).
type PeerChanged struct{ ID ServerID }

// PeerAddress says where a peer is reached, as "host:port"; "" when that is no longer known. It makes no peer live.
type PeerAddress struct {
	ID      ServerID
	Address string
}

// Root is one of the two aggregated discovery documents.
type Root int

const (
	RootCore   Root = iota // /api
	RootGroups             // /apis
	roots
)

// Path is the URL path of the document.
func (r Root) Path() string { return [roots]string{"/api", "/apis"}[r] }

// Fetched is the outcome of fetching the documents of some peers. Under a policy without KeepLastGood it is the outcome
// of a whole round: what is known of peers that are not in it is forgotten.
type Fetched struct {
	Results []FetchResult
	At      time.Time
}

// FetchResult is what one peer answered.
type FetchResult struct {
	ID ServerID
	// Incarnation is that of the peer when the fetch began; an answer from an earlier one is dropped under ForgetOnRestart.
	Incarnation string
	// Version is the peer's version as /version tells ("v1.37.1"), "" if it was not to be had.
	Version string
	Roots   [2]RootResult // by Root
}

// RootResult is one document, or why it could not be had. The zero value is an empty document.
type RootResult struct {
	Groups discovery.Groups
	// Failed is why it could not be had, for people, without addresses; "" if it could.
	Failed string
}

// LocalFetched is what the local server serves by itself.
type LocalFetched struct {
	Version string
	Roots   [2]discovery.Groups // by Root
	At      time.Time
}

// LocalLost says that the local server cannot be asked: what it serves when it comes back, perhaps with another version,
// is not known.
type LocalLost struct{ At time.Time }

// Extensions is the complete set of what the local server serves for custom resources and aggregated APIs at this time.
type Extensions struct {
	// CustomResources are the group, version and name of each served version of each CustomResourceDefinition.
	CustomResources []schema.GroupVersionResource
	// Unserved are the versions that a CustomResourceDefinition lists and does not serve. Upstream's policies count them as well.
	Unserved []schema.GroupVersionResource
	// Aggregated are the group versions of APIServices that name a Service.
	Aggregated []schema.GroupVersion
	At         time.Time
}

// StorageVersions is the complete set of StorageVersion objects (alpha): who can decode, and so serve, what.
type StorageVersions struct {
	Served map[schema.GroupVersionResource][]ServerID
}

// Synced says that every source has delivered what existed when it started.
type Synced struct{}

// LeaseWatch says whether the watch on the servers' leases has stalled: no lease has changed for so long that the local server may not
// know of a new peer. While it has, a policy with FailClosed takes nothing for absent.
type LeaseWatch struct{ Stalled bool }

// PeerFailed says that a peer could not be reached, or broke off before it answered. Only what this server saw itself counts, never
// a peer's own 5xx.
type PeerFailed struct {
	ID ServerID
	At time.Time
}

// PeerAnswered says that a peer has answered, whatever it said.
type PeerAnswered struct{ ID ServerID }

// Tick lets time pass: whatever ends by the clock (graces, ejections) and shows in documents ends now.
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
