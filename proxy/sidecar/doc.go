// Package sidecar is the reference Mixed Version Proxy as a separate process, `skewproof proxy`. It
// stands in front of one kube-apiserver of any version, whose own Mixed Version Proxy is off. It
// does everything for this kube-apiserver that package proxy does.
//
// # Authentication and authorization
//
// The sidecar tries credentials in the order of a kube-apiserver (pkg/kubeapiserver/authenticator):
// front-proxy certificate with identity headers, client certificate, bearer token, anonymous. It
// verifies certificates itself. It then asserts the user at the local kube-apiserver with
// front-proxy headers (user, UID, groups, extra), as the aggregation layer does at an aggregated
// API server. So the local kube-apiserver must have the same --requestheader flags. Only UIDs are
// lost if it has no --requestheader-uid-headers: before 1.32, before 1.33 without the feature gate
// RemoteRequestHeaderUID, or if the flag is not set.
//
// Bearer tokens, including tokens in WebSocket sub-protocols, go to the local kube-apiserver
// unchanged, on connections without the front-proxy certificate. The local kube-apiserver judges
// them. So its audiences, warnings, audit annotations and impersonation are the same as without a
// sidecar. Until it has accepted a token, requests with this token share no connection with other
// requests.
//
// The sidecar learns the user of a token only if it must: for a request that it sends to a peer,
// for the sidecar's own pages, and for the access log. A peer gets the user and never the token.
// The sidecar asks the local server with the caller's token (SelfSubjectReview), so that no
// admission webhook sees the token. Before v1.28 the sidecar has to put the token into a
// TokenReview. If the local server cannot be asked, the answer is 503. A 401 would say that the
// credentials are bad, which is unknown, and would make clients fetch new ones. Such a caller is
// never treated as anonymous. The answers are cached for --authentication-token-webhook-cache-ttl.
// During this time a peer may still get a user whose token was revoked.
//
// The sidecar itself authorizes no request. A request that it passes on is authorized by the server
// that serves it. Before the sidecar answers 503 with the names of resources or peers, and before
// it shows its own pages, it asks the local server whether the caller may do this
// (SubjectAccessReview).
//
// A caller without credentials is anonymous only if the local kube-apiserver accepts anonymous
// requests. The sidecar finds this out with requests without credentials. Otherwise it answers 401,
// or 503 while it does not know.
//
// The sidecar answers 403 for an identity that headers cannot carry unchanged. Field values lose
// white space at their ends (RFC 9110, 5.5), so the group " system:masters" would arrive as
// "system:masters".
//
// A server that trusts the sidecar's front-proxy certificate would also trust identity headers that
// a client sent. So the sidecar removes the headers of all names from which it or any
// kube-apiserver of the cluster reads identities. The servers' names are in the ConfigMap
// kube-system/extension-apiserver-authentication. Until the sidecar has read this ConfigMap, it
// answers requests with 503. If the ConfigMap has names that the sidecar's flags lack, the sidecar
// does not start.
//
// # What it serves
//
// The local server or a peer serves every path, with these exceptions. The local server answers
// /readyz, /livez and /healthz, and /readyz is ready only if the sidecar is ready too: clients and
// load balancers that ask the sidecar mean both. Merged discovery is shown only to callers to whom
// the local server shows its own discovery. The sidecar itself serves /debug/peers and
// /metrics/skewproof-proxy, to callers whom the local server allows the verb get on these paths.
// /metrics is the local server's.
//
// The sidecar serves its own /metrics, /debug/peers, /readyz and /livez on a second listener
// (--admin-bind-address). This listener has no TLS and is therefore on loopback only.
//
// # Shutdown
//
// When the context ends (SIGTERM), /readyz fails. After --shutdown-delay-duration, the sidecar
// accepts no new requests. Short requests may end within --shutdown-timeout. Then watches and
// upgraded connections are cut. The sidecar renews the endpoint lease until then, and deletes it
// last: as long as this server serves, its peers can find the resources that only this server
// serves.
package sidecar
