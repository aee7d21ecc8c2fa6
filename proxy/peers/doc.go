// Package peers has the sources of knowledge that feed a [proxy.Store]: which peers are live and
// where (leases, static configuration), what servers serve (discovery, StorageVersion objects), and
// what must not be taken from peers (custom resources and aggregated APIs). [Sources] runs them
// all; a [Publisher] tells the peers about the local server.
//
// # Which peers are live
//
// The [Roster] joins two leases in kube-system of each server. kube-apiserver writes the identity
// lease: it is labelled apiserver.kubernetes.io/identity=kube-apiserver, renewed every 10 s, and
// valid for an hour. The sidecar writes the endpoint lease: it is labelled
// proxy.skewproof.io/component=peer-proxy, renewed every 5 s while the server is ready, valid for
// 15 s, and has the server's address.
//
//   - (a) A peer with an endpoint lease is live while that lease exists. After the lease has
//     expired, only its address is unknown: a server that is cut off or paused still serves what it
//     serves (KEP-4020: a peer that cannot be reached is a 503, not a 404).
//   - (b) When the endpoint lease is deleted, as a sidecar does in an orderly stop, the peer is
//     gone at once. Its identity lease alone does not keep it live, because kube-apiservers before
//     1.36 leave theirs for an hour. If the identity lease is renewed afterwards, the server runs
//     without a sidecar: it is live, at an unknown address.
//   - (c) An endpoint lease that expired more than [RosterConfig].GoneAfter ago does not count. The
//     default is an hour, as long as upstream keeps the identity lease of a crashed server.
//   - (d) A peer with only an identity lease is live, at an unknown address, while that lease is
//     renewed: its sidecar may not have started. A lease that was not renewed for StaleAfter is a
//     leftover.
//   - (e) Silence counts only while some lease changes: of the time between two changes of leases,
//     at most five seconds count. A server that is cut off from etcd sees no change; without this
//     rule it would take all peers for gone, and answer 404 for what they serve.
//   - (f) If another holder at another address writes an endpoint lease that is still valid, there
//     is a second server with the same identity, on a host of the same name. Each counts, at its
//     own address, while it renews the lease. Otherwise requests for a resource that only one of
//     them serves would alternate between 200 and 404.
//   - (g) A live server that publishes no address, because it has no proxy, is asked directly if
//     its kube-apiserver's own address is known from elsewhere: from [RosterConfig].Direct, from its
//     identity lease if its own Mixed Version Proxy is on ([RosterConfig].Advertised), or from
//     the EndpointSlice of the Service kubernetes, if the certificate at an address is valid for the
//     host name of that server and of no other live one ([Config].Identify). The same
//     holds after an endpoint lease has expired, if the identity lease was renewed since: the
//     sidecar has ended, or was removed, without deleting its lease.
//
// The time since a renewal runs by this server's clock from when it saw the renewal, as in leader
// election, so clocks need not agree. Only the first sight of a lease uses the time in the lease.
//
// The endpoint lease also has a [Digest] of what its server serves. When it changes, the peer is
// asked at once: a server that was cut off from etcd serves other custom resources when it is back.
//
// A peer's incarnation is the holder of its endpoint lease, which the sidecar changes when the
// server restarts; without such a lease, the holder of its identity lease.
//
// # Trust
//
// Whoever may write leases in kube-system can name any address, so the transport to peers must
// verify their certificates. Text that is no address (see [ParseAddress]) is an unknown address.
package peers
