// Package sidecar is the reference Mixed Version Proxy as a process of its own, `skewproof proxy`.
// It stands in front of one kube-apiserver of any version, whose own Mixed Version Proxy is off,
// and does for it all that package proxy does.
//
// # Who may ask
//
// The order is a kube-apiserver's (pkg/kubeapiserver/authenticator): front-proxy certificate with
// identity headers, client certificate, bearer token, anonymous. The sidecar verifies certificates
// itself, and asserts their user at the local kube-apiserver by front-proxy headers (user, UID,
// groups, extra), as at an aggregated API server. So the local kube-apiserver must have the same
// --requestheader flags. Only UIDs are lost if it has no --requestheader-uid-headers: before 1.32,
// before 1.33 without the feature gate RemoteRequestHeaderUID, or if the flag is not set.
//
// Bearer tokens, also those in WebSocket sub-protocols, go to the local kube-apiserver as they are,
// by connections without the front-proxy certificate. That server judges them: its audiences,
// warnings, audit annotations and impersonation are those of a request without a sidecar. Until it
// has accepted a token, requests with that token share no connection with others.
//
// Whose token it is, the sidecar learns only when it must: when the request leaves for a peer,
// which gets the user and never the token, for pages of its own, and for the access log. It asks
// the local server as that caller (SelfSubjectReview), so that no admission webhook sees the token.
// Before v1.28 it has to put the token into a TokenReview. If the local server cannot be asked, the
// answer is 503: a 401 would say that the credentials are bad, which is unknown, and would make
// clients fetch new ones. Such a caller is never taken for anonymous. The answers are kept for
// --authentication-token-webhook-cache-ttl, so for that time a peer may still get a user whose
// token was revoked.
//
// The sidecar authorizes nobody by itself. What it passes on is authorized where it is served.
// Before it answers 503 with the names of resources or peers, and for pages of its own, it asks the
// local server whether the caller may do this (SubjectAccessReview).
//
// A caller without credentials is anonymous only if the local kube-apiserver would have said so:
// the sidecar asks it, without credentials, and answers 401 or 503 otherwise.
//
// An identity that headers cannot carry unchanged is answered with 403: field values lose white
// space at their ends (RFC 9110, 5.5), so that the group " system:masters" would arrive as
// "system:masters".
//
// A server that believes the sidecar's front-proxy certificate would believe a client's own
// identity headers too. So headers of all names by which the sidecar or any kube-apiserver of the
// cluster reads identities are removed from requests. The servers' names are in the ConfigMap
// kube-system/extension-apiserver-authentication. Until the sidecar has read it, requests are
// answered with 503; if it has names that the sidecar's flags lack, the sidecar does not start.
//
// # What it serves
//
// Everything is served by the local server or by a peer, with these exceptions. /readyz, /livez and
// /healthz are answered by the local server, and /readyz is ready only if the sidecar is ready too:
// clients and load balancers that ask the sidecar mean both. Merged discovery is shown only to
// callers to whom the local server shows its own. /debug/peers and /metrics/skewproof-proxy are the
// sidecar's own, for callers whom the local server allows get on these paths. /metrics is the local
// server's.
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
