// Package sidecar is the reference Mixed Version Proxy as a process of its own, `skewproof proxy`: it stands in front of one existing
// kube-apiserver of any version, whose own Mixed Version Proxy is off, and does for it all that package proxy does.
//
// # Who may ask
//
// The sidecar authenticates every caller, in the order in which a kube-apiserver does (k8s.io/apiserver, authenticatorfactory):
// front-proxy certificate with identity headers, client certificate, bearer token, anonymous. It authorises nobody: that is the local
// kube-apiserver's part, which learns of the caller by front-proxy headers (user, UID, groups, extra), as an aggregated API server does.
// So the local kube-apiserver must have the same --requestheader flags. UIDs are lost where it has no
// --requestheader-uid-headers (before 1.33 without the feature gate RemoteRequestHeaderUID, before 1.32 at all, or not set), and nothing else is.
//
// Bearer tokens, also those in WebSocket sub-protocols, are reviewed by the local kube-apiserver (TokenReview, no audience asked for: it
// accepts those of its own --api-audiences). A token that cannot be reviewed, because the local server cannot be asked, is answered with
// 503: 401 would say that the credentials are bad, which nobody knows, and would make clients fetch new ones. It is never taken for
// anonymous. Answers are cached as long as --authentication-token-webhook-cache-ttl says, so a revoked token lives that much longer.
//
// An identity that headers cannot carry unchanged is answered with 403: field values lose white space at their ends (RFC 9110, 5.5), so that
// the group " system:masters" would arrive as "system:masters".
//
// # What it serves
//
// Everything is the local server's or a peer's, with these exceptions at the front door. /readyz, /livez and /healthz are answered by the
// local server, and /readyz is ready only while the sidecar is as well: clients and load balancers ask the front door and mean both.
// Merged discovery is shown only to callers to whom the local server shows its own.
// /debug/peers is the sidecar's own, for members of system:masters alone, because it shows addresses. /metrics is the local server's own.
//
// The sidecar's own /metrics, /debug/peers, /readyz and /livez are on a second listener (--admin-bind-address), in plain HTTP and
// therefore on loopback only.
//
// # Its end
//
// A cancelled context (SIGTERM) makes /readyz fail; after --shutdown-delay-duration no new request is accepted; short requests may end within
// --shutdown-timeout, then watches and upgraded connections are cut. The endpoint lease is renewed until then, and deleted last: as long as
// this server serves, what it alone serves is found by its peers.
package sidecar
