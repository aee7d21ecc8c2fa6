// Package sim runs the real [proxy.Handler] of every server of a control plane on a virtual clock
// and a simulated network, so that thousands of schedules of faults can be searched.
//
// These parts are real: proxy.Handler, proxy.Table, peers.Schedule and peers.Roster, and the
// discovery documents of released kube-apiservers. These parts are simulated: time, the network,
// etcd with its leases and watches, and the apiserver behind the handler, which serves exactly the
// resources in its version's document.
//
// A run is a function of a [Setup], a [Case] and a tape of choices: the same three give the same
// trace, byte for byte. Everything happens in the goroutine that calls [Simulator.Run]. The history
// is like that of the other backends, and the same invariants judge it.
package sim
