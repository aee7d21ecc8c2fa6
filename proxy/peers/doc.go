// Package peers has the sources of knowledge that feed a [proxy.Store]. They find out which peers
// are live and where (identity leases, keys in etcd), what servers serve (discovery, StorageVersion
// objects), and which resources must not be learnt from peers (custom resources and aggregated
// APIs). [Sources] runs all of them. A [Publisher] tells the peers about the local server.
//
// # Which peers are live
//
// The [Roster] joins two things that are known of each server. kube-apiserver writes an identity
// lease in kube-system, with the label apiserver.kubernetes.io/identity=kube-apiserver. It is
// renewed every 10 s, and is valid for an hour. And a server publishes its address in a key in
// etcd, outside the API: /peerserverleases/<identity> under --etcd-prefix. This is the key that
// every kube-apiserver with the feature gate of the Mixed Version Proxy writes, so peers with this
// proxy and with upstream's see each other. The key lasts 15 s. The [Publisher] renews it every 5 s
// while the server is ready, and a released kube-apiserver every 10 s. Both are watched, so nothing
// is listed for a request.
//
//   - (a) A server whose key exists is live, at the address in the key. If the key has expired,
//     only the address is unknown: a server that is cut off or paused still serves its resources
//     (KEP-4020: a peer that cannot be reached is a 503, not a 404).
//   - (b) A server that stops gracefully withdraws its key. A kube-apiserver from 1.35 deletes its
//     identity lease when it stops. So while the identity lease exists, only the proxy has stopped.
//     The peer is then live, at an unknown address, and all knowledge of it stays. Earlier
//     kube-apiservers leave the identity lease for an hour. So the peer is gone at once, until the
//     identity lease is renewed. etcd does not say whether a key was withdrawn or has expired: a
//     key that is gone was withdrawn if it was renewed in the 12.5 s before, and otherwise it has
//     expired.
//   - (c) Once its key or its mark was seen, a server counts until its identity lease is deleted,
//     or was not renewed for an hour, as long as upstream keeps the identity lease of a crashed
//     server. The mark is a second key in etcd (/peerservermarks/<identity>), which a server with
//     this proxy writes with the first one, and which lasts for an hour. So a server that starts
//     knows of a peer that was paused or killed before.
//   - (d) An identity lease without a key and a mark is nothing, because anybody who may write
//     leases in kube-system can make one up: it turns no 404 into a 503, and no server dials an
//     address because of it. A server that has withdrawn its key, or that was identified by rule
//     (g), counts while its identity lease is renewed. One that was not renewed for StaleAfter does
//     not count.
//   - (e) Time without renewals counts only while some lease or key changes: of the time between
//     two changes, at most five seconds count. A server that is cut off from etcd sees no change.
//     Without this rule it would treat all peers as gone, and answer 404 for their resources.
//   - (f) If a key that is still valid gets another address, there is a second server with the same
//     identity, on a host with the same name. Each of the two counts, at its own address, while it
//     renews the key. Otherwise requests for a resource that only one of them serves would
//     alternate between 200 and 404.
//   - (g) A kube-apiserver whose own Mixed Version Proxy is off, or that is too old for it, writes
//     no key. It may still serve what no other server serves. Nobody can forge the second proof
//     either: a kube-apiserver with --endpoint-reconciler-type=lease, which is the default, writes
//     its IP address into etcd (/masterleases/). If the certificate there is valid for the host
//     name in an identity lease and for no other server's, and the identity is that of the host
//     name, the server is identified, and asked directly ([Config].Identify). The port is the local
//     server's own: kube-apiserver assumes too that all have one port, because the Service
//     kubernetes has only one. The same is done after a key has expired, if the identity lease was
//     renewed since: another program without the proxy has taken the server's place.
//   - (h) A server that has withdrawn its key may serve on, as a released kube-apiserver does for
//     its --shutdown-delay-duration after it was told to stop. So the server is asked directly at
//     its last address until it refuses or resets a connection, at most for [RosterConfig].Leaving.
//     (A balancer in front of a server that has ended accepts a connection and resets it.) A
//     connection that is not made in time does not count: the server may serve other clients. Nor
//     does a refusal in the first 1.5 s: the address may be wrong, and a server with this proxy
//     serves for a second after it has withdrawn its key. A server that deletes its identity lease
//     after its key has expired (it was paused, and is then told to stop) has no address. It counts
//     for these 1.5 s: 503, and not 404.
//
// The time since a renewal is measured with this server's clock, from the moment when it saw the
// renewal, as in leader election. So the clocks of servers need not agree. Only the first sight of
// an identity lease uses the time in the lease.
//
// A peer's incarnation is the holder of its identity lease, or the last holder if there is no
// lease. From 1.35 the holder is another one when the server has restarted. Up to 1.34 it is, too,
// if the lease was deleted meanwhile.
//
// # What peers serve
//
// The key does not say what its server serves. So every peer is asked again at the interval of the
// policy (3 s, give or take a fifth, in [proxy.Reference]). It is asked at once if it is new, has
// restarted, has another address, or begins to fail requests ([Sources.Failed]): a server that ends
// may be another one a few seconds later. A peer sends only documents that have changed (ETag,
// If-None-Match).
//
// # Trust
//
// Whoever can write into etcd, past the API, owns the cluster. Users of the API can delete the
// identity lease of a server, or write another host name into it. The transport to peers must
// verify their certificates. A text that is not an address (see [ParseAddress]) means that the
// address is unknown.
package peers
