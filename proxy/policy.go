package proxy

import "time"

// Policy is the set of switches in which implementations of the Mixed Version Proxy differ. It is
// plain data: copy and change it, but do not change it after a [Table] or [Store] got it. Each
// field says what its zero value does. Comments cite upstream's pkg/util/peerproxy of
// k8s.io/apiserver unless they name another source.
//
// Start from a preset: [Reference], or one that behaves like a released kube-apiserver, including
// its mistakes. The zero Policy is not a preset. A user may sensibly choose the switches of all
// sections except Quirks.
type Policy struct {
	// Name is the name of the preset, for logs and reports.
	Name string

	Knowledge KnowledgePolicy
	Routing   RoutingPolicy
	Discovery DiscoveryPolicy
	Fetching  FetchingPolicy
	Quirks    Quirks
}

// KnowledgePolicy says what a server assumes about its peers, and for how long.
type KnowledgePolicy struct {
	// StorageVersions learns what peers serve from StorageVersion objects (1.28 to 1.32) instead of
	// their discovery. They list no custom resources, aggregated APIs and subresources.
	StorageVersions bool

	// KeepLastGood keeps a peer's document when a later fetch fails. Without it, every round of
	// fetches replaces all knowledge (upstream: syncPeerDiscoveryCache).
	KeepLastGood bool

	// ForgetOnRestart drops a peer's document when a new process, perhaps of another version, gets
	// the peer's identity. Without it, the old document stays until a round of fetches replaces it.
	ForgetOnRestart bool

	// FailClosed answers 503, not 404, while a peer may serve the request: before the first
	// synchronisation, while the resources of some live peer are unknown, and while the lease watch
	// has stalled. Before the first synchronisation, /api and /apis answer 503 too. Without it,
	// unknown resources count as absent.
	FailClosed bool

	// WaitForPeers makes synchronisation, and so readiness, wait until every peer that was live at
	// the start was asked once, whether it answered or not. Without it, synchronisation waits only
	// for the leases and the local server (upstream: WaitForCacheSync).
	WaitForPeers bool

	// StaleAfter makes an identity lease count only if its server is known from keys in etcd, which
	// nobody can write through the API: the server has written its address there, or it was found at
	// an address there by its certificate. A server without such a key counts for StaleAfter after it
	// last renewed the lease. This should be several times the 10 s in which a kube-apiserver renews
	// it. Zero: every identity lease is a live server, for ever (upstream).
	StaleAfter time.Duration

	// Leaving is how long a peer that has withdrawn its address is still asked there, until it refuses
	// or resets a connection. A kube-apiserver withdraws its address when it is told to stop, and
	// serves for its --shutdown-delay-duration. Zero: the peer is gone at once.
	Leaving time.Duration

	// Extensions says which custom resources and aggregated APIs in peers' documents do not count:
	// none (ignored); their whole group versions (cut-out); the same, and for a grace those that
	// existed before (filtered); a custom resource by its name, and an aggregated API by its group
	// version (exact).
	Extensions ExtensionPolicy
}

// ExtensionPolicy says how a server avoids taking custom resources and aggregated APIs, which every
// server serves itself, from peers. Choose [ExtensionsExact]; the other values are for the presets
// of upstream's releases.
type ExtensionPolicy int

const (
	// ExtensionsIgnored takes everything from peers (1.34 and before). It is the zero value.
	ExtensionsIgnored ExtensionPolicy = iota
	// ExtensionsCutOut removes the group versions of extensions from the knowledge of peers (1.35).
	// When an extension is deleted, its group version returns with a later fetch. When a definition
	// only drops a version, that version never returns.
	ExtensionsCutOut
	// ExtensionsFiltered keeps raw and filtered knowledge separately. It excludes extensions that
	// exist, and for a grace also extensions that existed before (1.36).
	ExtensionsFiltered
	// ExtensionsExact excludes a custom resource by its name, so that built-in resources of the
	// same group version are still found. It excludes an aggregated API by its group version. It
	// excludes a deleted extension only from documents that are not newer than the deletion.
	ExtensionsExact
)

var extensionPolicies = []string{"ignored", "cut-out", "filtered", "exact"}

// String is the name by which [Policy.Change] knows the value.
func (e ExtensionPolicy) String() string { return nameOf(extensionPolicies, int(e), "ExtensionPolicy") }

// RoutingPolicy says how requests are routed.
type RoutingPolicy struct {
	// Subresources routes by group, version, resource and subresource. Without it, a request for a
	// subresource is routed as one for its resource.
	Subresources bool

	// DiscoveryPaths sends requests for /apis/<group>, /apis/<group>/<version> and their OpenAPI
	// documents to a peer if only peers know that group or version.
	DiscoveryPaths bool

	// RefuseAtHop answers 503 to a peer's request that the local server cannot serve (KEP-4020), and
	// takes a peer's 404 for the path of a resource for the same. Without it, the local server answers
	// 404, and so does a peer.
	RefuseAtHop bool

	// Attempts is the number of peers that are tried for one request until an answer begins. Zero
	// or one: no failover.
	Attempts int

	// Ejection is how long an unreachable peer is avoided if another peer can serve. Zero: never.
	Ejection time.Duration

	// DialTimeout is the longest time to get a connection. Zero: the transport's own limit, which is
	// 30 s upstream.
	DialTimeout time.Duration

	// Silence is how long a connection to a peer may bring no byte before it is given up, with all
	// requests on it. After half of this time, the peer is asked for a sign of life (HTTP/2 PING).
	// So a peer that is slow is told from one that is dead. Without HTTP/2, only a peer whose host
	// is dead or cut off is noticed. Zero: the transport's own times, which are 30 s and 15 s
	// upstream.
	Silence time.Duration
}

// DiscoveryPolicy says what discovery reports.
type DiscoveryPolicy struct {
	// Merge reports at /apis the union of what the local server and its peers serve. Without it,
	// discovery is the local server's.
	Merge bool

	// NewestFirst orders groups and versions as the newest server that knows them does, in linear
	// time. Without it, the order is a topological consensus of all servers (from 1.35:
	// apimachinery, pkg/util/sort).
	NewestFirst bool

	// Everywhere also merges /api, the older formats (v2beta1, the legacy lists) and /openapi/v3.
	// Without it, only v2 at /apis is merged.
	Everywhere bool

	// Incomplete says how discovery is answered while it may lack existing resources, because the
	// resources of some live peer are unknown or the lease watch has stalled. The values are
	// as-complete (as if nothing else existed), marked (with a group version that is Stale), and
	// refused (with 503). It counts only with FailClosed, and from the end of the first
	// synchronisation on.
	Incomplete IncompletePolicy
}

// IncompletePolicy says how merged discovery is answered while it may lack resources of some live
// peer. Choose [IncompleteMarked].
type IncompletePolicy int

const (
	// IncompleteAsComplete answers the known resources, as if no others existed. The deletion of a
	// namespace then leaves behind the objects of resources that only the unknown peer serves. It
	// is the zero value.
	IncompleteAsComplete IncompletePolicy = iota
	// IncompleteMarked answers the known resources, and lists a group version without resources
	// that is Stale: [IncompleteGroup]/[IncompleteVersion]. The resource list of this group version
	// is answered 503. To a client, it looks like an aggregated API that is not available. Clients
	// of client-go then use the listed resources, and know that others may be missing.
	IncompleteMarked
	// IncompleteRefused answers 503 at /api and /apis.
	IncompleteRefused
)

var incompletePolicies = []string{"as-complete", "marked", "refused"}

// String is the name by which [Policy.Change] knows the value.
func (i IncompletePolicy) String() string {
	return nameOf(incompletePolicies, int(i), "IncompletePolicy")
}

// FetchingPolicy says when the discovery of peers is fetched, and when that of the local server.
type FetchingPolicy struct {
	// Interval is the time between two regular fetches from a peer, plus or minus the fraction
	// Jitter (0.1 is a tenth). A peer says nothing when it begins to serve something else, so this
	// is how long that stays unknown. An unchanged document is not sent again. Zero: there are no
	// regular fetches, only those after events about leases and addresses.
	Interval time.Duration
	Jitter   float64

	// AfterChange is the time between two fetches from a peer for a while after custom resources or
	// aggregated APIs have changed, because peers' documents will change too. Zero: no such fetches.
	AfterChange time.Duration

	// Timeout is the longest time for the fetch of one document. Zero: the limits of the transport.
	Timeout time.Duration

	// Together asks all peers at the same time. Without it, they are asked one after the other, so
	// a slow peer delays the others' documents.
	Together bool

	// OnlyChanged asks only the peer of a lease event. Without it, every event starts a full round.
	OnlyChanged bool

	// FirstRetry is the delay after the first failure. Each further delay is twice the one before,
	// and LastRetry is the longest. Retries is the number of retries before the event is dropped.
	// Zero Retries: no limit.
	FirstRetry, LastRetry time.Duration
	Retries               int

	// LocalInterval is the time between two fetches of the local server's own discovery. Zero: it is
	// not fetched.
	LocalInterval time.Duration

	// Accept is the Accept header of a fetch from a peer.
	Accept string

	// Privileged makes the fetches as a member of system:masters, which a kube-apiserver's own
	// client is too. Without it, they need the rights that every authenticated user has, and in a
	// cluster that has taken discovery from these users, servers do not learn of each other.
	Privileged bool
}

// Quirks reproduce mistakes and side effects of released kube-apiservers, so that the presets of
// releases can be compared with the real code. Turn them on for such comparisons only.
type Quirks struct {
	// CrashOnFailedFetch makes a failed fetch end the server (1.34 uses the missing document). A
	// Table cannot crash: [Table.Crashed] says so, and the caller decides what to do.
	CrashOnFailedFetch bool

	// ExtensionGrace is the time for which a deleted extension is ignored in peers' documents, which
	// may be older than the deletion. ExtensionsExact needs no grace, because it knows the age of
	// each document. Zero: no grace.
	ExtensionGrace time.Duration

	// ExtensionReapInterval is the time between two searches for graces that have ended.
	// ExtensionsFiltered also searches when an extension changes, and at the end of a grace that
	// began while no search was due. Zero: a grace ends exactly on time.
	ExtensionReapInterval time.Duration

	// AllMustResolve answers 503 if the address of any capable peer is unknown (1.28 to 1.32).
	AllMustResolve bool

	// TrustAnyHop trusts the hop header of a resource request from any client. Under this switch a
	// request for discovery from a peer gets the merged document too, unless it asks for
	// profile=nopeer. Without it, the header counts only from peers.
	TrustAnyHop bool

	// PlainErrors answers a failed attempt with the transport's error as text/plain, with addresses.
	// It also forwards larger headers than a peer accepts, which fails. And it returns to the client
	// a peer's 401 for this server's own credentials, 431 for headers that this server has added, and
	// 503 with Retry-After while a peer shuts down. Without it, the answer is a metav1.Status without
	// addresses, the answer to too large headers is 431, and after such a 401, 431 or 503 another peer
	// is tried.
	PlainErrors bool

	// EncodeQuery sends peers the query parsed and sorted. Without it, they get the client's bytes.
	EncodeQuery bool

	// StaleWhenAlone keeps the last merged document after the last peer is gone (from 1.36: the
	// refilter returns before it invalidates the document if there are no peers).
	StaleWhenAlone bool

	// LastErrorOnly counts a fetch as successful if its last document (/apis) arrived. A peer whose
	// /api failed is not asked again, and counts as serving nothing there.
	LastErrorOnly bool

	// EmptyIsDocument takes the body of a 200 as the document, however it ended. An empty body, or a
	// body that broke off before its first byte, lists nothing, and the fetch is not retried. A body
	// that broke off later cannot be decoded, and the fetch fails. Without it, each of these bodies is
	// a failure. (Upstream: aggregateDiscovery does not learn that copying the body failed.)
	EmptyIsDocument bool

	// LocalByInterval routes by what the local server listed when LocalInterval last elapsed, while
	// discovery shows what it lists now (upstream: localDiscoveryCacheTicker). Without it, routing
	// uses what it lists now, too.
	LocalByInterval bool

	// UpgradesWithoutIdentity forwards a request for an upgrade (WebSocket, SPDY) without the user's
	// identity headers, and the peer answers 401.
	UpgradesWithoutIdentity bool
}
