package traffic

import (
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/sim/recorded"
)

// apiserver is a TLS server on loopback. Like a kube-apiserver it speaks HTTP/2. It counts its
// connections.
type apiserver struct {
	*httptest.Server
	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newAPIServer(t *testing.T, handler http.HandlerFunc) *apiserver {
	t.Helper()
	s := &apiserver{conns: map[net.Conn]bool{}}
	s.Server = httptest.NewUnstartedServer(handler)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // discard the errors of handshakes that a test broke off
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if state == http.StateClosed || state == http.StateHijacked {
			delete(s.conns, c)
		} else {
			s.conns[c] = true
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *apiserver) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *apiserver) config() rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// ledger is a Recorder that keeps all records.
type ledger struct {
	start time.Time

	mu         sync.Mutex
	operations []history.Operation
	documents  map[string]history.Document
	parsed     int
}

func newLedger() *ledger { return &ledger{start: time.Now(), documents: map[string]history.Document{}} }

func (l *ledger) Now() history.Time { return time.Since(l.start) }

func (l *ledger) Operation(o history.Operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.operations = append(l.operations, o)
}

func (l *ledger) Document(d history.Document) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parsed++
	l.documents[d.Hash] = d
}

func (l *ledger) HasDocument(hash string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.documents[hash]
	return ok
}

func (l *ledger) all() []history.Operation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]history.Operation(nil), l.operations...)
}

// only returns the one operation that must have been recorded.
func (l *ledger) only(t *testing.T) history.Operation {
	t.Helper()
	all := l.all()
	if len(all) != 1 {
		t.Fatalf("%d operations were recorded, want 1: %+v", len(all), all)
	}
	return all[0]
}

// connect returns one client of one server. The ledger records its operations.
func connect(t *testing.T, s *apiserver, l *ledger) *client {
	t.Helper()
	clients := connectAll(t, l, s)
	return clients.get(workload.Admin, "a")
}

// connectAll makes clients for servers named a, b, c….
func connectAll(t *testing.T, l *ledger, servers ...*apiserver) *Clients {
	t.Helper()
	var targets []Target
	for i, s := range servers {
		targets = append(targets, Target{Server: string(rune('a' + i)), URL: s.URL})
	}
	clients, err := NewClients(targets, []Identity{{Name: "admin", User: workload.Admin, Config: servers[0].config()}}, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(clients.Close)
	return clients
}

// respond writes a canned response.
func respond(w http.ResponseWriter, code int, contentType, body string) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	_, _ = w.Write([]byte(body))
}

func configMaps() history.Resource {
	return history.Resource{
		GVR: history.GVR{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true,
		Verbs: []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
	}
}

// The requests of the tests.

func of(verb, name string) workload.Request {
	return workload.Request{
		Verb: verb, GVR: configMaps().GVR, Namespace: workload.Namespace, Name: name, Client: workload.ClientDynamic, For: time.Second,
	}
}

func merged() workload.Request {
	return workload.Request{Verb: history.VerbDiscovery, Path: "/apis"}
}

// ask sends a request like the load.
func (c *client) ask(t *testing.T, r workload.Request) {
	t.Helper()
	c.send(t.Context(), r, history.PurposeLoad, workload.Timeout)
}

// recordedDocuments are discovery documents recorded from two releases.
func recordedDocuments(t *testing.T) map[string]history.Document {
	t.Helper()
	docs := map[string]history.Document{}
	for server, release := range map[string]string{"old": "v1.36.3", "new": "v1.37.1"} {
		v, err := recorded.Get(release)
		if err != nil {
			t.Fatal(err)
		}
		docs[server] = v.Document
	}
	return docs
}
