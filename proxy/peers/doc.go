// Package peers has the sources of knowledge that feed a [proxy.Store]. They find out which peers
// are live and where (leases), what servers serve (discovery, StorageVersion
// objects), and which resources must not be learnt from peers (custom resources and aggregated
// APIs). [Sources] runs all of them. A [Publisher] tells the peers about the local server.
//
// # Which peers are live
//
// The [Roster] joins two leases of each server, both in kube-system. kube-apiserver writes the
// identity lease. This lease has the label apiserver.kubernetes.io/identity=kube-apiserver, is
// renewed every 10 s, and is valid for an hour. The [Publisher] writes the endpoint lease. This
// lease has the label proxy.skewproof.io/component=peer-proxy and the server's address, is renewed
// every 5 s while the server is ready, and is valid for 15 s.
//
//   - (a) A peer with an endpoint lease is live while this lease exists. After the lease has
//     expired, only the peer's address is unknown: a server that is cut off or paused still serves
//     its resources (KEP-4020: a peer that cannot be reached is a 503, not a 404).
//   - (b) A server that stops gracefully deletes its endpoint lease. A kube-apiserver from 1.35
//     deletes its identity lease when it stops. So while the identity lease exists, only the proxy
//     has stopped. The peer is then live, at an unknown address, and all knowledge of it stays.
//     Earlier kube-apiservers leave the identity lease for an hour. So the peer is gone at once,
//     until the identity lease is renewed.
//   - (c) An endpoint lease that expired more than [RosterConfig].GoneAfter ago does not count. The
//     default is an hour, as long as upstream keeps the identity lease of a crashed server.
//   - (d) A peer with only an identity lease is live, at an unknown address, while this lease is
//     renewed: its proxy may not be ready. An identity lease that was not renewed for StaleAfter
//     does not count.
//   - (e) Time without renewals counts only while some lease changes: of the time between two
//     changes of leases, at most five seconds count. A server that is cut off from etcd sees no
//     change. Without this rule it would treat all peers as gone, and answer 404 for their
//     resources.
//   - (f) If another holder at another address writes an endpoint lease that is still valid, there
//     is a second server with the same identity, on a host with the same name. Each of the two
//     counts, at its own address, while it renews the lease. Otherwise requests for a resource that
//     only one of them serves would alternate between 200 and 404.
//   - (g) A live server without a proxy publishes no address. It is asked directly if the address
//     of its kube-apiserver is known from elsewhere. The address may come from the identity lease
//     if the server's own Mixed Version Proxy is on ([RosterConfig].Advertised). It may also come
//     from the EndpointSlice of the Service kubernetes, if the certificate at an address is valid
//     for the host name of this server and of no other live server ([Config].Identify). The same
//     rule applies after an endpoint lease has expired, if the identity lease was renewed since:
//     another program without the proxy has taken the server's place, and nobody deleted the lease.
//   - (h) A server that has withdrawn its leases may serve on: a kube-apiserver withdraws its
//     identity lease when it is told to stop, and serves for its --shutdown-delay-duration. So the
//     server is asked directly at its last address until it refuses or resets a connection, at most
//     for [RosterConfig].Leaving. (A balancer in front of a server that has ended accepts a
//     connection and resets it.) A connection that is not made in time does not count: the server
//     may serve other clients.
//
// The time since a renewal is measured with this server's clock, from the moment when it saw the
// renewal, as in leader election. So the clocks of servers need not agree. Only the first sight of
// a lease uses the time in the lease.
//
// The endpoint lease also has a [Digest] of what its server serves. When the digest changes, the
// peer is asked at once. For example, a server that was cut off from etcd serves other custom
// resources when it is connected again.
//
// A peer's incarnation is the holder of its endpoint lease. The holder is another one when the
// server has restarted. Without an endpoint lease, the incarnation is the holder of the identity
// lease.
//
// # Trust
//
// Any user that may write leases in kube-system can name any address. So the transport to peers
// must verify their certificates. A text that is not an address (see [ParseAddress]) means that the
// address is unknown.
package peers
