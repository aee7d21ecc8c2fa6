package traffic

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
)

// Whether a forged header reaches the server is what a hostile load is about: one that the client's own transport drops or refuses tests nothing.
func TestEveryForgeryReachesTheServer(t *testing.T) {
	var came atomic.Pointer[http.Header]
	record := newLedger()
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		came.Store(&r.Header)
		notFound(w, r)
	})
	c := connect(t, server, record)
	for i, headers := range forgeries {
		raw{path: "/api"}.action().send(context.WithValue(t.Context(), forgeryKey{}, headers), c)
		if n := len(record.all()); n != i+1 || record.all()[i].Status != http.StatusNotFound {
			t.Fatalf("forgery %d has not been answered: %+v", i, record.all())
		}
		says := slices.Contains(headers["X-Kubernetes-Peer-Proxied"], "true") || headers["X-Kubernetes-Apiserver-Rerouted"] != nil
		if op := record.all()[i]; op.Rerouted != says {
			t.Errorf("forgery %d is recorded as one that says it was rerouted: %v, want %v", i, op.Rerouted, says)
		}
		for name, values := range headers {
			if got := (*came.Load())[name]; !slices.Equal(got, values) {
				t.Errorf("forgery %d: the server saw %d values of %s, want %d", i, len(got), name, len(values))
			}
		}
	}
}

func TestAThirdOfAHostileLoadIsForgedAndNothingOfAnyOther(t *testing.T) {
	for _, profile := range []Profile{ProfileHostile, ProfileGeneral} {
		t.Run("profile "+string(profile), func(t *testing.T) {
			var forged atomic.Int64
			record := newLedger()
			server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
				for _, headers := range forgeries {
					for name := range headers {
						if r.Header[name] != nil {
							forged.Add(1)
							notFound(w, r)
							return
						}
					}
				}
				notFound(w, r)
			})
			_, stop := start(t, connectAll(t, record, server), Options{QPS: 1000, Profile: profile}, Classify(recordedDocuments(t)))
			// What is under way when the load is stopped never comes, on a busy machine half of it: only what was answered has come for certain.
			answered := func() (all, told int) {
				for _, op := range record.all() {
					if op.Status == 0 {
						continue
					}
					all++
					if op.Client == ClientForger {
						told++
					}
				}
				return all, told
			}
			until(t, "100 answers", func() bool { all, _ := answered(); return all >= 100 })
			stop()
			all, told := answered()
			switch n := int(forged.Load()); {
			case profile == ProfileGeneral && n+told > 0:
				t.Errorf("%d requests came forged, and the record has %d", n, told)
			case profile == ProfileHostile && (told < all/6 || told > all/2 || n < told):
				t.Errorf("%d of %d answered requests were forged, and %d came so", told, all, n)
			}
		})
	}
}
