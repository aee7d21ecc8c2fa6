// Package proxy is a Mixed Version Proxy (KEP-4020): the part of a control plane that, while kube-apiservers of different
// versions serve side by side, sends a request to one that can serve it, answers 503 rather than 404 when that one cannot be
// reached, and lets every server report the same discovery.
//
// It has a pure core and a thin shell. The core is an immutable [Table] of what is known of the local server and of its peers:
// [Table.Observe] returns a new table, [Table.Decide] says what to do with a request. Neither reads a clock, starts a
// goroutine or draws a random number, so the same inputs always give the same answer. The shell, [Handler], is an http.Handler
// whose transport, clock and choice among peers are injected.
//
// Every place in which released kube-apiservers and a better behaviour differ is one switch of [Policy], with presets for
// released versions. Sources of knowledge (leases, discovery fetches, StorageVersion objects, static configuration) are in package
// peers, documents in package discovery, and a complete process in package sidecar.
package proxy
