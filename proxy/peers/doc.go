// Package peers holds the sources of knowledge that feed a [proxy.Store]: who lives and where (leases, static configuration), what
// peers and the local server serve (discovery, StorageVersion objects) and what must not be taken from peers (custom resources and
// aggregated APIs). [Sources] starts them all; [Publisher] tells the peers about this server.
//
// # Who lives
//
// Two leases in kube-system speak of a server, and the [Roster] joins them. Its identity lease is the kube-apiserver's own: labelled
// apiserver.kubernetes.io/identity=kube-apiserver, renewed every 10 s, and valid for an hour. Its endpoint lease is its sidecar's:
// labelled proxy.skewproof.io/component=peer-proxy, renewed every 5 s while the server is ready, valid for 15 s, and with the address at
// which the server takes peers' requests.
//
//   - (a) A peer with an endpoint lease lives as long as that lease exists. Once the lease has expired its address is unknown, and the
//     peer lives all the same: a server that is cut off, or paused, still serves what it serves, and to take that for absent would
//     turn 503 into 404 (KEP-4020: a peer that cannot be reached is a 503).
//   - (b) When the endpoint lease is deleted, the peer is gone at once: the sidecar deletes it when it stops in good order. The
//     identity lease alone does not keep it alive, because servers before 1.36 leave theirs behind for an hour. If that lease is renewed
//     afterwards, the server runs without its sidecar: it lives, and its address is unknown.
//   - (c) An endpoint lease that expired more than [RosterConfig].GoneAfter ago no longer counts. That is an hour, for which upstream
//     keeps the identity lease of a server that crashed.
//   - (d) A peer with an identity lease only lives, at an unknown address, as long as that lease is renewed: it may be a server whose
//     sidecar has not started yet. Under StaleAfter without a renewal it is a leftover.
//   - (e) Silence is evidence only while anything is heard. A lease is expired when others, or its own, have been seen to change for that
//     long and it has not; of the time between two such sightings five seconds count. A server that is cut off from etcd, or whose
//     watch hangs, hears nothing of anybody: without this rule it would believe all peers gone, and answer 404 for what they serve.
//   - (f) An endpoint lease that is written by another holder, at another address, while the one before is still valid, is that of a second server
//     of the same identity: of one on a host of the same name. Each counts, at its own address, for as long as it renews the lease that they
//     share. Otherwise who asks for what one of them serves would be told by turns that nobody does.
//
// A renewal is judged by this server's clock from when it was seen to change, as leader election does, so clocks need not agree. Only
// the first sight of a lease is judged by the time written in it.
//
// The endpoint lease also has a [Digest] of what its server serves by itself. When that changes, the peer is asked at once: a server that was
// cut off from etcd serves other custom resources when it hears again, and nothing else would tell its peers.
//
// The incarnation of a peer is the holder of its endpoint lease, which its sidecar changes when the server behind it restarts; without
// such a lease, the holder of its identity lease.
//
// # Trust
//
// Whoever may write leases in kube-system can name an address, so an address is worth nothing by itself: the transport to peers must
// verify their certificates. What is no address at all (see [ParseAddress]) is an unknown address.
package peers
