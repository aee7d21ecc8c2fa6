package proxy

import "time"

// Policy is the set of switches in which implementations of the Mixed Version Proxy differ. Each field says what its zero value
// does; where it names no other source, upstream is k8s.io/apiserver, pkg/util/peerproxy.
//
// Use a preset: [Reference], or the one that behaves like a released kube-apiserver, its faults included. The zero Policy is not
// one of them.
type Policy struct {
	// Name is the preset's name, for logs and reports.
	Name string

	Knowledge KnowledgePolicy
	Routing   RoutingPolicy
	Discovery DiscoveryPolicy
	Fetching  FetchingPolicy
}

// KnowledgePolicy says what is believed of peers, and for how long.
type KnowledgePolicy struct {
	// StorageVersions takes what peers serve from StorageVersion objects (1.28 to 1.32) rather than from their discovery. It
	// knows neither custom resources nor aggregated APIs, and no subresources.
	StorageVersions bool

	// KeepLastGood keeps what was learnt from a peer when a later fetch fails, document by document. Without it every round of
	// fetches replaces all that is known of every peer, so one failure forgets everything (upstream: syncPeerDiscoveryCache).
	KeepLastGood bool

	// ForgetOnRestart drops what was learnt from a peer once a new process holds its identity: that one may be of another
	// version. Without it the old knowledge stays until a round of fetches replaces it.
	ForgetOnRestart bool

	// CrashOnFailedFetch says that a failed fetch ends the server (v1.34: the error is never looked at and the missing document is
	// used all the same). A core cannot crash: the Table says so by [Table.Crashed], and whoever runs it decides.
	CrashOnFailedFetch bool

	// FailClosed answers 503 rather than 404 while the server cannot know that no peer serves what a request asks for: before the
	// first synchronisation, while it is unknown what some live peer serves, and while the lease watch has stalled. /api and /apis
	// answer 503 before the first synchronisation too. Without it, what is unknown counts as absent.
	FailClosed bool

	// WaitForPeers makes synchronisation, and with it readiness, wait until every peer that was live at the start has been asked
	// once what it serves, whether it answered or not. Without it, synchronisation waits for the leases and the local server only
	// (upstream: WaitForCacheSync).
	WaitForPeers bool

	// StaleAfter is how long an identity lease without an endpoint lease keeps its server live after the last renewal. It should be
	// several times the 10 s after which a kube-apiserver renews the lease. Zero: for ever (upstream takes every identity lease for a
	// live server).
	StaleAfter time.Duration

	// Extensions says which group versions of custom resources and aggregated APIs are not taken from peers.
	Extensions ExtensionPolicy

	// Grace is for how long what ceased to be an extension is still not taken from peers: their discovery may be of an
	// earlier time. Zero: not at all. ExtensionsExact needs none: it knows how old each document is.
	Grace time.Duration

	// ReapInterval is how often expired graces are looked for; zero: they end exactly when they expire. ExtensionsFiltered looks for them
	// whenever an extension changes as well, and at the end of a grace that began while no other had such a look ahead.
	ReapInterval time.Duration
}

// ExtensionPolicy is how custom resources and aggregated APIs, which every server serves by itself, are kept out of what peers
// are believed to serve.
type ExtensionPolicy int

const (
	// ExtensionsIgnored takes everything from peers (1.34 and before).
	ExtensionsIgnored ExtensionPolicy = iota
	// ExtensionsCutOut removes group versions from what is known of peers for good (1.35): when the exclusion ends, they are
	// back only with the next fetch; and a version that a CustomResourceDefinition drops stays excluded for ever.
	ExtensionsCutOut
	// ExtensionsFiltered keeps raw and filtered knowledge apart and compares the extensions that exist with those that did (1.36).
	ExtensionsFiltered
	// ExtensionsExact filters a custom resource by its own name rather than its whole group version, so that built-in resources of
	// the same group version are still found; an aggregated API, which owns its group version, by that; and what was dropped for
	// as long as, and only where, a document is not newer than the change.
	ExtensionsExact
)

// RoutingPolicy says what is done with a request.
type RoutingPolicy struct {
	// Subresources routes by group, version, resource and subresource. Without it a subresource goes where its resource is served.
	Subresources bool

	// DiscoveryPaths sends /apis/<group>, /apis/<group>/<version> and their OpenAPI documents to a peer when only peers know them.
	DiscoveryPaths bool

	// AllMustResolve answers 503 as soon as the address of one capable peer is unknown, though another's is known (1.28 to 1.32).
	AllMustResolve bool

	// TrustAnyHop believes the hop header whoever sends it, about resources; merged discovery is for peers as well then, unless they ask for
	// profile=nopeer. Without it only an authenticated peer's counts.
	TrustAnyHop bool

	// RefuseAtHop answers 503 to a rerouted request that cannot be served here (KEP-4020). Without it the local server says 404.
	RefuseAtHop bool

	// Attempts is how many peers are tried for one request, before the first byte of an answer; zero and one: no failover.
	Attempts int

	// Ejection is for how long a peer that could not be reached is avoided where another can serve; zero: never.
	Ejection time.Duration

	// DialTimeout bounds the time until there is a connection. Zero: the transport's own limit, which upstream leaves at 30 s.
	DialTimeout time.Duration

	// AttemptTimeout bounds the time until the headers of the answer, of a watch as well; zero: no bound. It does not bind exec,
	// attach, port-forward, proxy, logs and upgraded connections.
	AttemptTimeout time.Duration

	// WriteTimeout is the AttemptTimeout of requests that are not repeatable, which admission webhooks may hold up for as long as 30 s
	// each: to give one up is to tell its client nothing about what was done.
	WriteTimeout time.Duration

	// InFlight bounds the requests to one peer that wait for its answer, streams excepted; one user may have a quarter of them. Zero: no
	// bound.
	InFlight int

	// PlainErrors answers a failed attempt with the transport's own words as text/plain, addresses included, rather than
	// with a metav1.Status that names no address. What fails because the client sends more headers than a peer takes is a failed attempt as well
	// then, rather than 431.
	PlainErrors bool

	// EncodeQuery sorts the query and writes it anew on the way to a peer; without it the peer gets the client's own bytes.
	EncodeQuery bool
}

// DiscoveryPolicy says what discovery reports.
type DiscoveryPolicy struct {
	// Merge reports the union of local and peers' groups at /apis. Without it discovery is the local server's.
	Merge bool

	// NewestFirst orders groups and versions as the newest server that knows them does, and merges in time linear in the input. Without it
	// the order is a topological consensus of all servers (from 1.35: apimachinery, pkg/util/sort).
	NewestFirst bool

	// Everywhere merges /api, the older formats (v2beta1, the legacy lists) and the index of /openapi/v3 as well as v2 at /apis.
	Everywhere bool

	// StaleWhenAlone keeps reporting the last merged document after the last peer has gone (from 1.36: the refilter returns before
	// it invalidates when no peer is left).
	StaleWhenAlone bool
}

// FetchingPolicy says when peers' discovery is fetched, and when the local server's.
type FetchingPolicy struct {
	// Interval is how often every peer is asked again without any occasion, give or take Jitter (a fraction, 0.1 for a tenth).
	// Zero: only on lease events.
	Interval time.Duration
	Jitter   float64

	// AfterChange is how often every peer is asked for a while after custom resources or aggregated APIs have changed here, since peers'
	// documents are about to change likewise. Zero: a change here is no occasion.
	AfterChange time.Duration

	// WhenTold has each server tell its peers, in its endpoint lease, a digest of what it serves, and a peer asked at once when that has
	// changed. Without it a change that the lease does not show is learnt at the next regular round.
	WhenTold bool

	// Timeout bounds one fetch of one document; zero: the transport's limits.
	Timeout time.Duration

	// Together asks all peers at once. Without it one after the other, so a slow one delays what is learnt of the rest.
	Together bool

	// OnlyChanged asks only the peer that a lease event is about; without it every event is a round through all peers.
	OnlyChanged bool

	// LastErrorOnly takes a fetch for successful if its last document (/apis) came: a peer whose /api failed is then not asked
	// again, and known to serve nothing there.
	LastErrorOnly bool

	// EmptyIsDocument takes whatever has come of an answer of 200 for the document, however the answer ended: nothing, because the body was
	// empty or broke off before its first byte, lists nothing, which is a success and not repeated. What breaks off later cannot be decoded, and
	// has failed. Without it a body that did not come whole, or is empty, has failed. (Upstream: aggregateDiscovery in peer_discovery.go does not
	// learn that copying the body ended in an error.)
	EmptyIsDocument bool

	// FirstRetry and LastRetry are the delays after a first failure and at most; each is double the one before. Retries is how
	// many there are before the lease event is dropped; zero: they never end.
	FirstRetry, LastRetry time.Duration
	Retries               int

	// LocalInterval is how often the local server is asked what it serves.
	LocalInterval time.Duration

	// LocalByInterval routes by what the local server listed when LocalInterval last came round, whatever was learnt of it since; discovery
	// shows what it lists now (upstream: localDiscoveryCacheTicker). Without it every answer counts at once.
	LocalByInterval bool

	// Accept is the Accept header of a fetch from a peer.
	Accept string
}
