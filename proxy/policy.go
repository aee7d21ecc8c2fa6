package proxy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Policy is the set of switches in which implementations of the Mixed Version Proxy differ. It is plain data: copy it and change
// it, but not once a [Table] or [Store] has it. Each field says what its zero value does. Where a comment cites upstream without a
// source, that is pkg/util/peerproxy of k8s.io/apiserver.
//
// Start from a preset: [Reference], or one that behaves like a released kube-apiserver, mistakes included. The zero Policy is no
// preset. All sections but Quirks hold what a user may sensibly choose.
type Policy struct {
	// Name is the name of the preset, for logs and reports.
	Name string

	Knowledge KnowledgePolicy
	Routing   RoutingPolicy
	Discovery DiscoveryPolicy
	Fetching  FetchingPolicy
	Quirks    Quirks
}

// KnowledgePolicy says what a server believes of its peers, and for how long.
type KnowledgePolicy struct {
	// StorageVersions learns what peers serve from StorageVersion objects (1.28 to 1.32) instead of their discovery. These objects
	// list no custom resources, aggregated APIs and subresources.
	StorageVersions bool

	// KeepLastGood keeps what was learnt from a peer when a later fetch fails, document by document. Without it, every round of
	// fetches replaces all knowledge of every peer, so that one failure forgets everything (upstream: syncPeerDiscoveryCache).
	KeepLastGood bool

	// ForgetOnRestart drops what was learnt from a peer when a new process holds its identity, because that process may be of
	// another version. Without it, the old knowledge stays until a round of fetches replaces it.
	ForgetOnRestart bool

	// FailClosed answers 503 rather than 404 while the server cannot know that no peer serves what a request asks for: before the
	// first synchronisation, while it is unknown what some live peer serves, and while the lease watch has stalled. /api and /apis
	// answer 503 before the first synchronisation too. Without it, what is unknown counts as absent.
	FailClosed bool

	// WaitForPeers makes synchronisation, and with it readiness, wait until every peer that was live at the start has been asked
	// once what it serves, whether it answered or not. Without it, synchronisation waits only for the leases and the local server
	// (upstream: WaitForCacheSync).
	WaitForPeers bool

	// StaleAfter is how long an identity lease without an endpoint lease keeps its server live after the last renewal. It should be
	// several times the 10 s after which a kube-apiserver renews the lease. Zero: for ever (upstream takes every identity lease for
	// a live server).
	StaleAfter time.Duration

	// Extensions says which custom resources and aggregated APIs are not taken from peers.
	Extensions ExtensionPolicy
}

// ExtensionPolicy says how custom resources and aggregated APIs are kept out of what peers are believed to serve: every server
// serves them itself. The zero value is ExtensionsIgnored; [ExtensionsExact] is the one to choose, the others are upstream's.
type ExtensionPolicy int

const (
	// ExtensionsIgnored takes everything from peers (1.34 and before).
	ExtensionsIgnored ExtensionPolicy = iota
	// ExtensionsCutOut removes the group versions of extensions from the knowledge of peers for good (1.35). They come back only
	// with the next fetch after the exclusion has ended. A version that a CustomResourceDefinition drops stays excluded for ever.
	ExtensionsCutOut
	// ExtensionsFiltered keeps raw and filtered knowledge apart, and excludes extensions that exist and, for a grace, those that
	// existed (1.36).
	ExtensionsFiltered
	// ExtensionsExact excludes a custom resource by its own name instead of its whole group version, so that built-in resources of
	// the same group version are still found. It excludes an aggregated API by the group version that the API owns. It excludes what
	// was deleted only from documents that are not newer than the deletion.
	ExtensionsExact
)

// extensionPolicies are the names of the values, by value.
var extensionPolicies = []string{"ignored", "cut-out", "filtered", "exact"}

// String is the name that [ParseExtensionPolicy] reads.
func (e ExtensionPolicy) String() string {
	if e < 0 || int(e) >= len(extensionPolicies) {
		return fmt.Sprintf("ExtensionPolicy(%d)", int(e))
	}
	return extensionPolicies[e]
}

// ParseExtensionPolicy reads "ignored", "cut-out", "filtered" or "exact". The error lists these names.
func ParseExtensionPolicy(name string) (ExtensionPolicy, error) {
	i := slices.Index(extensionPolicies, name)
	if i < 0 {
		return 0, fmt.Errorf("want %s or %s", strings.Join(extensionPolicies[:len(extensionPolicies)-1], ", "), extensionPolicies[len(extensionPolicies)-1])
	}
	return ExtensionPolicy(i), nil
}

// RoutingPolicy says what is done with a request.
type RoutingPolicy struct {
	// Subresources routes by group, version, resource and subresource. Without it, a subresource goes where its resource is served.
	Subresources bool

	// DiscoveryPaths sends requests for /apis/<group>, /apis/<group>/<version> and their OpenAPI documents to a peer when only
	// peers know that group or version.
	DiscoveryPaths bool

	// RefuseAtHop answers 503 to a rerouted request that the local server cannot serve (KEP-4020). Without it, the local server
	// answers 404.
	RefuseAtHop bool

	// Attempts is how many peers one request tries before the first byte of an answer. Zero and one: no failover.
	Attempts int

	// Ejection is how long a peer that could not be reached is avoided, as long as another peer can serve. Zero: never.
	Ejection time.Duration

	// DialTimeout bounds the time to get a connection. Zero: the transport's own limit, which is 30 s upstream.
	DialTimeout time.Duration

	// AttemptTimeout bounds the time to the headers of the answer, those of a watch included. It does not bound exec, attach,
	// port-forward, proxy, logs and upgraded connections. Zero: no bound.
	AttemptTimeout time.Duration

	// WriteTimeout is the AttemptTimeout of requests that are not repeatable. It should be longer, because each admission webhook
	// may take up to 30 s and a client whose write is given up does not know whether it was carried out. Zero: no bound.
	WriteTimeout time.Duration

	// InFlight bounds the requests that wait for the answer of one peer, streams excepted. One user may have a quarter of them.
	// Zero: no bound.
	InFlight int
}

// DiscoveryPolicy says what discovery reports.
type DiscoveryPolicy struct {
	// Merge reports at /apis the union of what the local server and its peers serve. Without it, discovery is the local server's.
	Merge bool

	// NewestFirst orders groups and versions as the newest server that knows them does, and merges in time linear in the input.
	// Without it, the order is a topological consensus of all servers (from 1.35: pkg/util/sort of k8s.io/apimachinery).
	NewestFirst bool

	// Everywhere merges /api, the older formats (v2beta1, the legacy lists) and the index of /openapi/v3 as well. Without it, only
	// v2 at /apis is merged.
	Everywhere bool
}

// FetchingPolicy says when the discovery of peers is fetched, and when that of the local server.
type FetchingPolicy struct {
	// Interval is how often every peer is asked when nothing else gives reason to, plus or minus the fraction Jitter (0.1 is a
	// tenth). Zero: only after lease events.
	Interval time.Duration
	Jitter   float64

	// AfterChange is how often every peer is asked for a while after custom resources or aggregated APIs have changed, since the
	// documents of peers are about to change too. Zero: such a change gives no reason to ask.
	AfterChange time.Duration

	// WhenTold makes each server publish a digest of what it serves in its endpoint lease, and asks a peer at once when its digest
	// changes. Without it, a change that no lease shows is learnt in the next regular round.
	WhenTold bool

	// Timeout bounds the fetch of one document. Zero: the limits of the transport.
	Timeout time.Duration

	// Together asks all peers at the same time. Without it, they are asked one after the other, so that a slow peer delays what is
	// learnt of the rest.
	Together bool

	// OnlyChanged asks only the peer that a lease event is about. Without it, every event starts a round through all peers.
	OnlyChanged bool

	// FirstRetry is the delay after the first failure, LastRetry the longest delay; each is twice the one before. Retries is how
	// many retries there are before the lease event is dropped. Zero Retries: no limit.
	FirstRetry, LastRetry time.Duration
	Retries               int

	// LocalInterval is how often the local server is asked what it serves. Zero: never.
	LocalInterval time.Duration

	// Accept is the Accept header of a fetch from a peer.
	Accept string
}

// Quirks are the switches that reproduce mistakes and side effects of released kube-apiservers. The presets of releases need them
// to be compared with the real code; nobody else should turn them on.
type Quirks struct {
	// CrashOnFailedFetch makes a failed fetch end the server (1.34 never looks at the error and uses the missing document). A
	// Table cannot crash: [Table.Crashed] says so, and the caller decides what to do.
	CrashOnFailedFetch bool

	// ExtensionGrace is how long a former extension is still not taken from peers, whose discovery may be older than its deletion.
	// ExtensionsExact needs no grace, because it knows how old each document is. Zero: not at all.
	ExtensionGrace time.Duration

	// ExtensionReapInterval is how often the server looks for graces that have ended. ExtensionsFiltered also looks whenever an
	// extension changes, and at the end of a grace that began while no such look was due. Zero: a grace ends exactly on time.
	ExtensionReapInterval time.Duration

	// AllMustResolve answers 503 when the address of one capable peer is unknown, even if that of another is known (1.28 to 1.32).
	AllMustResolve bool

	// TrustAnyHop believes the hop header of a resource request whoever sends it. Peers then get merged discovery too, unless they
	// ask for profile=nopeer. Without it, only the hop header of an authenticated peer counts.
	TrustAnyHop bool

	// PlainErrors answers a failed attempt with the transport's error as text/plain, addresses included. It also sends a request
	// with more headers than a peer takes, which then fails. Without it, the answer is a metav1.Status without addresses, and too
	// many headers are answered with 431.
	PlainErrors bool

	// EncodeQuery parses the query and writes it sorted on the way to a peer. Without it, the peer gets the client's own bytes.
	EncodeQuery bool

	// StaleWhenAlone keeps reporting the last merged document after the last peer has gone (from 1.36: the refilter returns before
	// it invalidates the document when no peer is left).
	StaleWhenAlone bool

	// LastErrorOnly counts a fetch as successful if its last document (/apis) came. A peer whose /api failed is then not asked
	// again, and counts as serving nothing there.
	LastErrorOnly bool

	// EmptyIsDocument takes whatever came of an answer of 200 for the document, however the answer ended. An empty body, or one that
	// broke off before its first byte, lists nothing, and the fetch is not retried. A body that broke off later cannot be decoded,
	// so the fetch has failed. Without it, an empty or incomplete body is a failure. (Upstream: aggregateDiscovery in
	// peer_discovery.go does not learn that copying the body failed.)
	EmptyIsDocument bool

	// LocalByInterval routes by what the local server listed when LocalInterval last elapsed, whatever was learnt of it since.
	// Discovery shows what it lists now (upstream: localDiscoveryCacheTicker). Without it, every answer counts at once.
	LocalByInterval bool
}
