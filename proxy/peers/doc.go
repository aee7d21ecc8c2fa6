// Package peers has the sources of knowledge that feed a [proxy.Store]: which peers are live and where (leases, static configuration),
// what peers and the local server serve (discovery, StorageVersion objects), and what must not be taken from peers (custom resources
// and aggregated APIs). [Sources] runs them all; a [Publisher] tells the peers about the local server.
//
// # Which peers are live
//
// Two leases in kube-system are about a server, and the [Roster] joins them. The identity lease is written by kube-apiserver: it is
// labelled apiserver.kubernetes.io/identity=kube-apiserver, renewed every 10 s, and valid for an hour. The endpoint lease is written by
// the sidecar: it is labelled proxy.skewproof.io/component=peer-proxy, renewed every 5 s while the server is ready, valid for 15 s, and
// has the address at which the server takes requests of peers.
//
//   - (a) A peer with an endpoint lease is live as long as that lease exists. When the lease has expired, the peer's address is unknown,
//     but the peer is still live: a server that is cut off or paused still serves what it serves, and taking that for absent would turn
//     503 into 404 (KEP-4020: a peer that cannot be reached is a 503).
//   - (b) When the endpoint lease is deleted, the peer is gone at once: a sidecar deletes it at the end of an orderly stop. The identity
//     lease alone does not keep the peer live, because kube-apiservers before 1.36 leave theirs behind for an hour. If the identity lease
//     is renewed afterwards, the server runs without its sidecar: it is live, and its address is unknown.
//   - (c) An endpoint lease that expired more than [RosterConfig].GoneAfter ago no longer counts. The default is an hour, for which
//     upstream keeps the identity lease of a crashed server.
//   - (d) A peer with only an identity lease is live, at an unknown address, as long as that lease is renewed: its sidecar may not have
//     started yet. A lease that was not renewed for StaleAfter is a leftover.
//   - (e) Silence counts only while some lease changes. A lease is expired when other leases have been seen to change for that long and
//     it has not; of the time between two such changes at most five seconds count. A server that is cut off from etcd, or whose watch
//     hangs, sees no change: without this rule it would take all peers for gone, and answer 404 for what they serve.
//   - (f) If an endpoint lease is written by another holder, at another address, while the lease before is still valid, there is a second
//     server with the same identity, on a host of the same name. Each of the two counts, at its own address, as long as it renews the
//     lease that they share. Otherwise requests for a resource that only one of them serves would alternate between 200 and 404.
//
// The time since a renewal is measured by this server's clock from the moment when it saw the renewal, as in leader election, so clocks
// need not agree. Only the first sight of a lease uses the time written in it.
//
// The endpoint lease also has a [Digest] of what its server serves. When the digest changes, the peer is asked at once: a server that
// was cut off from etcd serves other custom resources when it is connected again, and nothing else would tell its peers.
//
// The incarnation of a peer is the holder of its endpoint lease, which its sidecar changes when the server behind it restarts; without
// such a lease, the holder of its identity lease.
//
// # Trust
//
// Whoever may write leases in kube-system can name an address, so an address proves nothing: the transport to peers must verify their
// certificates. Text that is no address (see [ParseAddress]) is an unknown address.
package peers
