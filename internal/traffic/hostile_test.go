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
			until(t, "100 operations", func() bool { return len(record.all()) >= 100 })
			stop()
			all := record.all()
			// What was under way when the load was stopped never came, on a busy machine half of it: only what was answered must have.
			told, answered := 0, 0
			for _, op := range all {
				if op.Client == ClientForger {
					told++
					if op.Status != 0 {
						answered++
					}
				}
			}
			switch n := int(forged.Load()); {
			case profile == ProfileGeneral && n+told > 0:
				t.Errorf("%d requests were forged", n)
			case profile == ProfileHostile && (told < len(all)/6 || told > len(all)/2):
				t.Errorf("%d of %d requests were forged", told, len(all))
			case profile == ProfileHostile && (answered == 0 || n < answered || n > told):
				t.Errorf("%d of %d forged requests were answered, and %d came forged", answered, told, n)
			}
		})
	}
}
