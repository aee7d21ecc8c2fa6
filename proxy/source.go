package proxy

import "embed"

// Source is the source of this package, of the packages below it, and of a kube-apiserver that has
// it in place of its own Mixed Version Proxy. Such a server is built in the module of a released
// kube-apiserver, whose modules replace each other and which therefore nothing can import.
//
//go:embed *.go discovery/*.go internal peers/*.go apiserver/*.go apiserver/_server
var Source embed.FS
