// Package proxy is a Mixed Version Proxy (KEP-4020). While kube-apiservers of different versions
// run side by side, it sends each request to a server that can serve it, answers 503 rather than
// 404 if no such server can be reached, and lets every server report the same discovery.
//
// The package has a pure core and a thin shell. The core is [Table], an immutable value with
// everything that is known of the servers. [Table.Observe] returns a new table after an event.
// [Table.Decide] says what to do with a request. Neither reads a clock, starts a goroutine or draws
// a random number. The shell is [Handler], an http.Handler. Its transport, clock and choice among
// peers are injected. A [Store] holds the present table, which the sources of knowledge change and
// the handler reads.
//
// Each difference between released kube-apiservers and better behaviour is one switch of [Policy],
// with presets for releases. Package peers has the sources of knowledge, package discovery has the
// documents, and package apiserver puts the proxy into a kube-apiserver.
package proxy
