package traffic

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

// Every kind of client names the impersonated user in the same headers, and the operation names
// both users.
func TestEveryClientImpersonates(t *testing.T) {
	var mu sync.Mutex
	var headers []string
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		var named []string
		for name, values := range r.Header {
			if strings.HasPrefix(name, "Impersonate-") {
				named = append(named, strings.ToLower(name)+": "+strings.Join(values, ","))
			}
		}
		slices.Sort(named)
		mu.Lock()
		headers = append(headers, strings.Join(named, "; "))
		mu.Unlock()
		respond(w, http.StatusNotFound, "application/json", `{"kind":"Status","apiVersion":"v1","reason":"NotFound","code":404}`)
	})
	config := server.config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "joe", UID: "7", Groups: []string{"g", "h"}, Extra: map[string][]string{"x.dev/why": {"a", "b"}}}
	record := newLedger()
	clients, err := NewClients([]Target{{Server: "a", URL: server.URL}}, []Identity{{Name: "x", User: "joe", Impersonator: "admin", Config: config}}, record)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(clients.Close)
	configMaps := history.GVR{Version: "v1", Resource: "configmaps"}
	for _, r := range []workload.Request{
		{Verb: "get", GVR: configMaps, Namespace: "n", Name: "x", Client: workload.ClientTyped},
		{Verb: "get", GVR: configMaps, Namespace: "n", Name: "x", Client: workload.ClientDynamic},
		{Verb: "get", GVR: configMaps, Namespace: "n", Name: "x", Client: workload.ClientREST},
		{Verb: "get", GVR: configMaps, Namespace: "n", Name: "x", Client: workload.ClientREST, HTTP1: true},
		{Verb: "get", Path: "/watched", Upgrade: true},
		{Verb: "get", Path: "/watched", Upgrade: true, Protocol: workload.ProtocolSPDY},
	} {
		r.User = "joe"
		clients.Send(t.Context(), "a", r, history.PurposeLoad, workload.Timeout)
	}
	const want = "impersonate-extra-x.dev%2fwhy: a,b; impersonate-group: g,h; impersonate-uid: 7; impersonate-user: joe"
	all := record.all()
	// A target may have its own configuration for the user of the run, who may impersonate another.
	own, err := NewClients([]Target{{Server: "a", URL: server.URL, Config: &config}}, []Identity{{Name: "admin", User: workload.Admin}}, newLedger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Close)
	own.Send(t.Context(), "a", workload.Request{Verb: "get", GVR: configMaps, Name: "x"}, history.PurposeLoad, workload.Timeout)
	if len(headers) != 7 || headers[6] != want {
		t.Fatalf("%d requests arrived, the last as %q; want %q", len(headers), headers[len(headers)-1], want)
	}
	headers = headers[:6]
	if len(all) != 6 {
		t.Fatalf("%d requests were recorded, want 6", len(all))
	}
	for i := range headers {
		if headers[i] != want {
			t.Errorf("request %d: %s, want %s", i, headers[i], want)
		}
		if all[i].User != "joe" || all[i].Impersonator != "admin" {
			t.Errorf("operation %d is of %q, sent by %q", i, all[i].User, all[i].Impersonator)
		}
	}
}
