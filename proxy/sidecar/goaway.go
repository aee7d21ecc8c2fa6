package sidecar

import (
	"math/rand/v2"
	"net/http"
)

// maxGoawayChance is kube-apiserver's upper bound of --goaway-chance.
const maxGoawayChance = 0.02

// withGoaway ends the HTTP/2 connection of a client after a random fraction of requests, so that
// the client connects again, perhaps to another server (k8s.io/apiserver, WithProbabilisticGoaway).
// It does not end the connection of a peer: a peer dials this server by its address, and all
// callers of the peer share the connection. Ending it would cost requests and balance no load.
func withGoaway(chance float64, next http.Handler) http.Handler {
	if chance <= 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		closeConnectionAfter(w, r, fromPeer(r) || rand.Float64() >= chance)
		next.ServeHTTP(w, r)
	})
}
