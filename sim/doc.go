// Package sim runs the real [proxy.Handler] of every server of a control plane on a virtual clock and a simulated network, so that schedules of
// faults can be searched by the thousand that no cluster could ever be driven through.
//
// What is real: proxy.Handler, proxy.Table, peers.Schedule and peers.Roster, and the discovery documents of released kube-apiservers. What is
// simulated: time, the network, etcd with its leases and watches, and what stands behind the handler, an apiserver that serves exactly what
// its version's document lists.
//
// A run is a function of a [Setup], a [Case] and a tape of choices: the same three give the same bytes of trace, in any process, on any machine.
// Everything happens in the goroutine that calls [Simulator.Run]. It leaves a history as the other backends do, which the same invariants
// judge.
package sim
