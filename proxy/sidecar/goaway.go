package sidecar

import (
	"math/rand/v2"
	"net/http"
)

// maxGoawayChance is kube-apiserver's bound of --goaway-chance.
const maxGoawayChance = 0.02

// withGoaway ends the HTTP/2 connection of a client after a random fraction of requests, so that
// the client connects again, perhaps to another server (k8s.io/apiserver, WithProbabilisticGoaway).
// A peer dials this server by its address, and all its callers share the connection: ending it
// would cost requests and balance nothing.
func withGoaway(chance float64, next http.Handler) http.Handler {
	if chance <= 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		closeConnectionAfter(w, r, fromPeer(r) || rand.Float64() >= chance)
		next.ServeHTTP(w, r)
	})
}
