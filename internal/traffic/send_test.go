package traffic

import (
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

// A hostile load is useful only if its forged headers reach the server. A header that the client's
// own transport drops or rejects tests nothing.
func TestEveryForgeryReachesTheServer(t *testing.T) {
	var came atomic.Pointer[http.Header]
	record := newLedger()
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		came.Store(&r.Header)
		notFound(w, r)
	})
	c := connect(t, server, record)
	for i, forgery := range workload.Forgeries {
		headers := forgery.Header
		c.ask(t, workload.Request{Verb: history.VerbLegacy, Path: "/api", Forged: forgery.Name})
		if n := len(record.all()); n != i+1 || record.all()[i].Status != http.StatusNotFound {
			t.Fatalf("forgery %s has not been answered: %+v", forgery.Name, record.all())
		}
		says := slices.Contains(headers["X-Kubernetes-Peer-Proxied"], "true") || headers["X-Kubernetes-Apiserver-Rerouted"] != nil
		if op := record.all()[i]; op.Rerouted != says || op.Client != workload.ClientForger {
			t.Errorf("forgery %s is recorded as rerouted: %v, want %v", forgery.Name, op.Rerouted, says)
		}
		for name, values := range headers {
			if got := (*came.Load())[name]; !slices.Equal(got, values) {
				t.Errorf("forgery %s: the server saw %d values of %s, want %d", forgery.Name, len(got), name, len(values))
			}
		}
	}
}
