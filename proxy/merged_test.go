package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// neverAsked is the transport of tests in which the handler must not ask a peer.
func neverAsked(t *testing.T) http.RoundTripper {
	return transportFunc(func(r *http.Request) (*http.Response, error) {
		t.Errorf("a peer was asked for %s", r.URL)
		return nil, io.EOF
	})
}

// listedIn returns the "group/version resource" entries of an aggregated document.
func listedIn(t *testing.T, contentType string, body []byte) []string {
	t.Helper()
	groups, err := discovery.Decode(contentType, body)
	if err != nil {
		t.Fatalf("decode %s: %v\n%s", contentType, err, body)
	}
	var list []string
	for _, g := range groups {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				list = append(list, Resource{Group: g.Name, Version: v.Version, Resource: r.Resource}.String())
			}
		}
	}
	slices.Sort(list)
	return list
}

func TestMergedDiscovery(t *testing.T) {
	const protobuf = "application/vnd.kubernetes.protobuf"
	both := []string{jobs.String(), gadget.String()}
	known := capablePeers(nil, "a")
	for name, c := range map[string]struct {
		policy Policy
		events []Event
		path   string
		accept string
		hop    bool
		want   []string // entries; nil: the local server answers
		code   int
		seen   []DiscoverySource
	}{
		"v2":                              {Reference(), known, "/apis", discovery.AcceptV2, false, both, 200, []DiscoverySource{DiscoveryMerged}},
		"v2, with a slash":                {Reference(), known, "/apis/", discovery.AcceptV2, false, both, 200, []DiscoverySource{DiscoveryMerged}},
		"v2 in protobuf":                  {Reference(), known, "/apis", strings.Replace(discovery.AcceptV2, "application/json", protobuf, 1), false, both, 200, []DiscoverySource{DiscoveryMerged}},
		"v2beta1":                         {Reference(), known, "/apis", discovery.AcceptV2Beta1, false, both, 200, []DiscoverySource{DiscoveryMerged}},
		"core":                            {Reference(), known, "/api", discovery.AcceptV2, false, []string{pods.String()}, 200, []DiscoverySource{DiscoveryMerged}},
		"no peer":                         {Reference(), known, "/apis", discovery.AcceptV2NoPeer, false, nil, 200, []DiscoverySource{DiscoveryNoPeer}},
		"no peer, core":                   {Reference(), known, "/api", discovery.AcceptV2NoPeer, false, nil, 200, []DiscoverySource{DiscoveryNoPeer}},
		"legacy core has an address":      {Reference(), known, "/api", "application/json", false, nil, 200, []DiscoverySource{DiscoveryMerged}},
		"for a peer":                      {Reference(), known, "/apis", discovery.AcceptV2, true, nil, 200, nil},
		"before anything is known":        {Reference(), nil, "/apis", discovery.AcceptV2, false, nil, 503, nil},
		"before peers are known":          {Reference(), known[:1], "/apis", discovery.AcceptV2, false, nil, 503, nil},
		"no peer before anything is":      {Reference(), nil, "/apis", discovery.AcceptV2NoPeer, false, nil, 200, []DiscoverySource{DiscoveryNoPeer}},
		"upstream 1.37":                   {Upstream137(), known, "/apis", discovery.AcceptV2, false, both, 200, []DiscoverySource{DiscoveryMerged}},
		"upstream 1.37, no peer":          {Upstream137(), known, "/apis", discovery.AcceptV2NoPeer, false, nil, 200, []DiscoverySource{DiscoveryNoPeer}},
		"upstream 1.37, v2beta1":          {Upstream137(), known, "/apis", discovery.AcceptV2Beta1, false, nil, 200, nil},
		"upstream 1.37, v2beta1 then v2":  {Upstream137(), known, "/apis", discovery.AcceptV2Beta1 + "," + discovery.AcceptV2, false, both, 200, []DiscoverySource{DiscoveryMerged}},
		"upstream 1.37, legacy":           {Upstream137(), known, "/apis", "application/json", false, nil, 200, nil},
		"upstream 1.37, core":             {Upstream137(), known, "/api", discovery.AcceptV2, false, nil, 200, nil},
		"upstream 1.34":                   {Upstream134(), known, "/apis", discovery.AcceptV2, false, nil, 200, nil},
		"upstream before it is known":     {Upstream137(), nil, "/apis", discovery.AcceptV2, false, nil, 200, nil},
		"longer paths are something else": {Reference(), known, "/apis//", discovery.AcceptV2, false, nil, 200, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, c.policy, c.events, neverAsked(t), fromPeers)
			header := []string{"Accept", c.accept}
			if c.hop {
				header = append(header, HopHeader, "true")
			}
			got := s.ask("GET", c.path, "", header...)
			if got.Code != c.code {
				t.Fatalf("%d %s, want %d", got.Code, got.Body, c.code)
			}
			switch {
			case c.want != nil:
				if diff := cmp.Diff(c.want, listedIn(t, got.Header().Get("Content-Type"), got.Body.Bytes())); diff != "" {
					t.Errorf("lists (-want +got):\n%s", diff)
				}
				if got.Header().Get("ETag") == "" || !strings.Contains(got.Header().Get("Vary"), "Accept") {
					t.Errorf("headers %v, want ETag and Vary", got.Header())
				}
			case c.code == 200 && got.Body.String() != "local":
				t.Errorf("answered %s, want the local server's answer", got.Body)
			case c.code == 503 && got.Header().Get("Retry-After") == "":
				t.Error("503 without Retry-After")
			}
			if diff := cmp.Diff(c.seen, s.seen.discovered); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("POST goes to the local server", func(t *testing.T) {
		s := newShell(t, Reference(), known, neverAsked(t))
		if got := s.ask("POST", "/apis", "x", "Accept", discovery.AcceptV2); got.Body.String() != "local" {
			t.Errorf("%d %s, want the local server's answer", got.Code, got.Body)
		}
	})
}

func TestLegacyDiscoveryHasPeersGroups(t *testing.T) {
	// Here the local server has batch/v1 with jobs. The peer also has cronjobs in batch/v1, and a
	// version and a group of its own.
	cron := Resource{Group: "batch", Version: "v1", Resource: "cronjobs"}
	next := Resource{Group: "batch", Version: "v2", Resource: "jobs"}
	events := []Event{
		LocalFetched{Version: "v1.36.3", Roots: [roots]discovery.Groups{groups(pods), withVerbs(groups(jobs, widget))}, At: epoch},
		PeerAppeared{ID: "a", Incarnation: "1"},
		Fetched{At: epoch, Results: []FetchResult{{ID: "a", Incarnation: "1", Version: "v1.37.1", Roots: [roots]RootResult{
			{Groups: groups(pods)}, {Groups: withVerbs(groups(jobs, cron, next, gadget))},
		}}}},
		Synced{},
	}
	s := newShell(t, Reference(), events, neverAsked(t))
	for path, want := range map[string][]string{
		"/apis":                {"batch", "example.com", "new.k8s.io"},
		"/apis/batch":          {"batch/v1", "batch/v2"},
		"/apis/new.k8s.io":     {"new.k8s.io/v1"},
		"/apis/batch/v1":       {"cronjobs", "jobs"},
		"/apis/batch/v2":       {"jobs"},
		"/apis/new.k8s.io/v1":  {"gadgets"},
		"/apis/example.com":    nil, // nothing to add: the local server answers
		"/apis/example.com/v1": nil,
		"/api/v1":              nil,
		"/apis/nobodys.io":     nil,
		"/api":                 nil,
	} {
		t.Run(path, func(t *testing.T) {
			got := s.ask("GET", path, "", "Accept", "application/json")
			if want == nil {
				if got.Body.String() != "local" {
					t.Errorf("%d %s, want the local server's answer", got.Code, got.Body)
				}
				return
			}
			var list struct {
				Groups, Resources []struct{ Name string }
				Versions          []metav1.GroupVersionForDiscovery
			}
			if err := json.Unmarshal(got.Body.Bytes(), &list); err != nil {
				t.Fatalf("%v: %s", err, got.Body)
			}
			var names []string
			for _, n := range append(list.Groups, list.Resources...) {
				names = append(names, n.Name)
			}
			for _, v := range list.Versions {
				names = append(names, v.GroupVersion)
			}
			slices.Sort(names)
			if diff := cmp.Diff(want, names); diff != "" {
				t.Errorf("lists (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a peer gets the local view", func(t *testing.T) {
		s := newShell(t, Reference(), events, neverAsked(t), fromPeers)
		if got := s.ask("GET", "/apis/new.k8s.io", "", "Accept", "application/json", HopHeader, "true"); got.Code != 503 {
			t.Errorf("%d %s, want the refusal: this server does not have the group", got.Code, got.Body)
		}
	})
}

// withVerbs adds verbs to resources, so that the legacy lists show them.
func withVerbs(list discovery.Groups) discovery.Groups {
	for g := range list {
		for v := range list[g].Versions {
			for r := range list[g].Versions[v].Resources {
				resource := &list[g].Versions[v].Resources[r]
				resource.Verbs = []string{"get", "list"}
				resource.Scope = apidiscoveryv2.ScopeNamespace
				resource.ResponseKind = &metav1.GroupVersionKind{Kind: "X"}
			}
		}
	}
	return list
}

func TestMergedDocumentIsNeverOlderThanTheTable(t *testing.T) {
	s := newShell(t, Reference(), capablePeers(nil, "a"), neverAsked(t))
	read := func() ([]string, string) {
		got := s.ask("GET", "/apis", "", "Accept", discovery.AcceptV2)
		return listedIn(t, got.Header().Get("Content-Type"), got.Body.Bytes()), got.Header().Get("ETag")
	}
	_, tag := read()
	if got := s.ask("GET", "/apis", "", "Accept", discovery.AcceptV2, "If-None-Match", tag); got.Code != 304 {
		t.Errorf("If-None-Match: %d, want 304", got.Code)
	}
	s.store.Observe(PeerGone{ID: "a"})
	without, newer := read()
	if diff := cmp.Diff([]string{jobs.String()}, without); diff != "" || newer == tag {
		t.Errorf("after the peer is gone, ETag %s, before %s (-want +got):\n%s", newer, tag, diff)
	}
	if diff := cmp.Diff([]DiscoverySource{DiscoveryMerged, DiscoveryCached, DiscoveryMerged}, s.seen.discovered); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
}

// If a goroutine has seen a change in the store, it also sees the change in the document.
func TestMergedDocumentLosesNoInvalidation(t *testing.T) {
	s := newShell(t, Reference(), capablePeers(nil), neverAsked(t))
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 200 {
				before := len(s.store.Table().Sources(RootGroups))
				got := s.ask("GET", "/apis", "", "Accept", discovery.AcceptV2)
				entries := listedIn(t, got.Header().Get("Content-Type"), got.Body.Bytes())
				if len(entries) < before { // one resource for each source
					t.Errorf("lists %d resources, though %d servers were known before it was asked for", len(entries), before)
					return
				}
			}
		})
	}
	running.Go(func() {
		for i := range 100 {
			id := ServerID(fmt.Sprint("peer-", i))
			own := Resource{Group: fmt.Sprintf("g%d.k8s.io", i), Version: "v1", Resource: "things"}
			s.store.Observe(PeerAppeared{ID: id, Incarnation: "1"}, Fetched{At: epoch, Results: []FetchResult{
				{ID: id, Incarnation: "1", Roots: [roots]RootResult{{}, {Groups: groups(own)}}}}})
		}
	})
	running.Wait()
}

func TestOpenAPIIndex(t *testing.T) {
	const own = `{"paths":{"apis/batch/v1":{"serverRelativeURL":"/openapi/v3/apis/batch/v1?hash=AB"},".well-known/x":{"serverRelativeURL":"/openapi/v3/.well-known/x?hash=1"}}}`
	serving := func(code int, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("If-None-Match") != "" && r.URL.Path == "/openapi/v3" && code == 200 {
				t.Error("the local server was asked conditionally: its answer would be empty")
			}
			w.WriteHeader(code)
			io.WriteString(w, body)
		})
	}
	known := capablePeers(nil, "a")
	t.Run("lists versions that only peers serve", func(t *testing.T) {
		s := newShell(t, Reference(), known, neverAsked(t))
		s.local.Handler = serving(200, own)
		got := s.ask("GET", "/openapi/v3", "", "Accept", "application/json", "If-None-Match", `"old"`)
		index, err := discovery.DecodeOpenAPI(got.Body.Bytes())
		if err != nil {
			t.Fatalf("%d %s: %v", got.Code, got.Body, err)
		}
		want := discovery.OpenAPIIndex{
			"apis/batch/v1":      "/openapi/v3/apis/batch/v1?hash=AB",
			".well-known/x":      "/openapi/v3/.well-known/x?hash=1",
			"apis/new.k8s.io/v1": "/openapi/v3/apis/new.k8s.io/v1",
		}
		if diff := cmp.Diff(want, index); diff != "" {
			t.Errorf("index (-want +got):\n%s", diff)
		}
		if again := s.ask("GET", "/openapi/v3", "", "If-None-Match", got.Header().Get("ETag")); again.Code != 304 {
			t.Errorf("If-None-Match: %d, want 304", again.Code)
		}
		if head := s.ask("HEAD", "/openapi/v3", ""); head.Code != 200 || head.Body.Len() != 0 || head.Header().Get("ETag") != got.Header().Get("ETag") {
			t.Errorf("HEAD: %d, %d bytes, %v", head.Code, head.Body.Len(), head.Header())
		}
	})
	t.Run("URLs stay on this server for all names of peers' groups", func(t *testing.T) {
		events := slices.Clone(known)
		events = append(events, Fetched{At: epoch, Results: []FetchResult{serves("a", "1",
			Resource{Group: "..", Version: "..", Resource: "x"}, Resource{Group: "a?b", Version: "v1", Resource: "x"}, gadget)}})
		s := newShell(t, Reference(), events, neverAsked(t))
		s.local.Handler = serving(200, own)
		got := s.ask("GET", "/openapi/v3", "").Body.String()
		if strings.Contains(got, "..") || strings.Contains(got, "a?b") || !strings.Contains(got, "new.k8s.io") {
			t.Errorf("%s", got)
		}
	})
	for name, c := range map[string]struct {
		policy  Policy
		events  []Event
		handler http.Handler
		hop     bool
		code    int
		body    string
	}{
		"is the local server's if peers add nothing": {Reference(), capablePeers(nil), serving(200, own), false, 200, own},
		"is the local server's for a peer":           {Reference(), known, serving(200, own), true, 200, own},
		"is the local server's under upstream":       {Upstream137(), known, serving(200, own), false, 200, own},
		"is the local server's error":                {Reference(), known, serving(403, "forbidden"), false, 403, "forbidden"},
		"is the local server's if it makes no sense": {Reference(), known, serving(200, "<html>"), false, 200, "<html>"},
		"is the local server's if it is huge":        {Reference(), known, serving(200, strings.Repeat(" ", discovery.MaxBody+1)), false, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, c.policy, c.events, neverAsked(t), fromPeers)
			s.local.Handler = c.handler
			r := httptest.NewRequest("GET", "/openapi/v3", nil)
			if c.hop {
				r.Header.Set(HopHeader, "true")
			}
			if got := s.serve(r); got.Code != c.code || !strings.HasPrefix(got.Body.String(), c.body) {
				t.Errorf("%d %.100s, want %d %s", got.Code, got.Body, c.code, c.body)
			}
		})
	}
}
