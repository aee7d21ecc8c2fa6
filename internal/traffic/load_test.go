package traffic

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

// until waits for a condition. It fails the test if the condition is not true after a minute.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("timed out waiting for: %s", what)
		case <-tick.C:
		}
	}
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusNotFound, "text/plain", "404 page not found\n")
}

// start runs a load until the returned function is called, which waits for its end.
func start(t *testing.T, clients *Clients, options Options, probes []workload.Probe) (*Load, func()) {
	t.Helper()
	load := NewLoad(clients, options)
	load.SetProbes(probes)
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { load.Run(ctx) })
	return load, func() {
		cancel()
		ended.Wait()
	}
}

// The test has the clock of synctest, because on a busy machine not every lane keeps its rate.
func TestLoadIsSpreadEvenly(t *testing.T) {
	probes := workload.Classify(recordedDocuments(t))
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		var targets []Target
		for _, server := range []string{"a", "b", "c"} {
			targets = append(targets, Target{Server: server, URL: "https://127.0.0.1:1"})
		}
		clients, err := NewClients(targets, []Identity{{Name: "admin", User: workload.Admin}}, record)
		if err != nil {
			t.Fatal(err)
		}
		defer clients.Close()
		for _, c := range clients.clients {
			c.record.next = answering(notFound)
		}
		_, stop := start(t, clients, Options{QPS: 600}, probes)
		time.Sleep(time.Second)
		stop()

		all := record.all()
		count := map[string]int{}
		for _, op := range all {
			count[op.Server]++
		}
		for server, n := range count {
			if n < len(all)*32/100 || n > len(all)*35/100 {
				t.Errorf("server %q got %d of %d requests, want a third", server, n, len(all))
			}
		}
		if len(count) != 3 || len(all) < 600 {
			t.Errorf("asked %v, want three servers, 600 times and more", count)
		}
	})
}

// answering is a transport without a network. The handler answers at once.
type answering http.HandlerFunc

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	a(w, r)
	return w.Result(), nil
}

// sharedCertificate starts servers that answer 404. All httptest servers have the same certificate,
// so the CA of one is the CA of all.
func sharedCertificate(t *testing.T, n int) []*apiserver {
	t.Helper()
	var servers []*apiserver
	for range n {
		servers = append(servers, newAPIServer(t, notFound))
	}
	return servers
}

func TestSilentServerTakesNothingFromTheOthers(t *testing.T) {
	arrived := make(chan struct{}, 1000)
	silent := newAPIServer(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	healthy := newAPIServer(t, notFound)
	record := newLedger()
	clients := connectAll(t, record, silent, healthy)
	_, stop := start(t, clients, Options{QPS: 1000, InFlight: 4}, nil)
	for range 4 {
		<-arrived
	}
	until(t, "100 answers of the healthy server", func() bool { return len(record.all()) >= 100 })
	if n := len(arrived); n != 0 {
		t.Errorf("%d requests more than the four allowed wait for the silent server", n)
	}
	stop()

	canceled := 0
	for _, op := range record.all() {
		if op.Server == "a" {
			canceled++
			if op.Failure != history.FailureCanceled {
				t.Errorf("a request cut off by the end of the run is recorded as %q (%s)", op.Failure, op.Error)
			}
		}
	}
	if canceled != 4 {
		t.Errorf("%d requests to the silent server were recorded, want the 4 that were sent", canceled)
	}
}

func TestLoadFollowsNewProbes(t *testing.T) {
	record := newLedger()
	load, stop := start(t, connectAll(t, record, newAPIServer(t, notFound)), Options{QPS: 100}, nil)
	defer stop()
	until(t, "discovery", func() bool { return len(record.all()) > 0 })
	load.SetProbes([]workload.Probe{{Resource: configMaps(), Class: workload.Somewhere, Servers: []string{"a"}}})
	until(t, "config maps", func() bool {
		return slices.ContainsFunc(record.all(), func(op history.Operation) bool { return op.GVR.Resource == "configmaps" })
	})
}

func TestLoadEndsWithoutTraces(t *testing.T) {
	server := newAPIServer(t, notFound)
	record := newLedger()
	clients := connectAll(t, record, server)
	_, stop := start(t, clients, Options{QPS: 100}, workload.Classify(recordedDocuments(t)))
	until(t, "operations", func() bool { return len(record.all()) > 20 })
	stop()
	n := len(record.all())
	clients.Close()
	until(t, "all connections to be closed", func() bool { return server.open() == 0 })
	if late := len(record.all()) - n; late != 0 {
		t.Errorf("%d operations were recorded after Run had returned", late)
	}
}
