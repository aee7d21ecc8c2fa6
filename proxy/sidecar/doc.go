// Package sidecar is the reference Mixed Version Proxy as a process of its own, `skewproof proxy`.
// It stands in front of one kube-apiserver of any version, whose own Mixed Version Proxy is off,
// and does for it all that package proxy does.
//
// # Who may ask
//
// The sidecar authenticates every caller in the order of a kube-apiserver (k8s.io/apiserver,
// authenticatorfactory): front-proxy certificate with identity headers, client certificate, bearer
// token, anonymous. It authorises nobody. That is left to the local kube-apiserver, which learns
// the caller's identity from front-proxy headers (user, UID, groups, extra), as an aggregated API
// server does. So the local kube-apiserver must have the same --requestheader flags. Only UIDs are
// lost if it has no --requestheader-uid-headers: before 1.32, before 1.33 without the feature gate
// RemoteRequestHeaderUID, or if the flag is not set.
//
// Bearer tokens, also those in WebSocket sub-protocols, are reviewed by the local kube-apiserver
// (TokenReview without an audience: it accepts those of its own --api-audiences). If a token cannot
// be reviewed, because the local server cannot be asked, the answer is 503: a 401 would say that
// the credentials are bad, which is unknown, and would make clients fetch new ones. Such a caller
// is never taken for anonymous. Reviews are cached for --authentication-token-webhook-cache-ttl, so
// a revoked token is accepted that much longer.
//
// A caller without credentials is anonymous only if the local kube-apiserver would have said so: the
// sidecar asks it, without credentials, and answers 401 or 503 otherwise.
//
// An identity that headers cannot carry unchanged is answered with 403: field values lose white
// space at their ends (RFC 9110, 5.5), so that the group " system:masters" would arrive as
// "system:masters".
//
// A server that believes the sidecar's front-proxy certificate would believe a client's own identity
// headers too. So headers of all names by which the sidecar or any kube-apiserver of the cluster
// reads identities are removed from requests. The servers' names are in the ConfigMap
// kube-system/extension-apiserver-authentication. Until the sidecar has read it, requests are
// answered with 503; if it has names that the sidecar's flags lack, the sidecar does not start.
//
// # What it serves
//
// Everything is served by the local server or by a peer, with these exceptions. /readyz, /livez and
// /healthz are answered by the local server, and /readyz is ready only if the sidecar is ready too:
// clients and load balancers that ask the sidecar mean both. Merged discovery is shown only to
// callers to whom the local server shows its own. /debug/peers is the sidecar's own, for members of
// system:masters alone, because it shows addresses. /metrics is the local server's.
//
// The sidecar's own /metrics, /debug/peers, /readyz and /livez are on a second listener
// (--admin-bind-address), which has no TLS and is therefore on loopback only.
//
// # Shutdown
//
// When the context ends (SIGTERM), /readyz fails. After --shutdown-delay-duration no new request is
// accepted; short requests may end within --shutdown-timeout, then watches and upgraded connections
// are cut. The endpoint lease is renewed until then, and deleted last: as long as this server
// serves, peers find what only it serves.
package sidecar
