package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// unheard has the events after which the resources of a live peer are unknown.
var unheard = []Event{
	LocalFetched{Version: "v1.36.3", Roots: [roots]discovery.Groups{readable(pods), readable(jobs)}, At: epoch},
	PeerAppeared{ID: "a", Incarnation: "1"}, PeerAddress{ID: "a", Address: "a.test:6443"},
	Fetched{At: epoch, Results: []FetchResult{{ID: "a", Incarnation: "1", Roots: [roots]RootResult{{Failed: "unknown authority"}, {Failed: "unknown authority"}}}}},
	Synced{},
}

// readable are groups whose resources have a kind and verbs, so that client-go lists them.
func readable(listed ...Resource) discovery.Groups {
	all := groups(listed...)
	for _, g := range all {
		for _, v := range g.Versions {
			for i := range v.Resources {
				r := &v.Resources[i]
				r.Verbs, r.ResponseKind = []string{"get", "list"}, &metav1.GroupVersionKind{Group: g.Name, Version: v.Version, Kind: r.Resource}
			}
		}
	}
	return all
}

func with(events []Event, more ...Event) []Event { return append(slices.Clip(events), more...) }

func TestWhatIsIncomplete(t *testing.T) {
	known := capablePeers(nil, "a")
	halfHeard := Fetched{At: epoch, Results: []FetchResult{{ID: "a", Incarnation: "1", Roots: [roots]RootResult{{Failed: "broken off"}, {Groups: groups(jobs, gadget)}}}}}
	otherHalf := Fetched{At: epoch.Add(time.Second), Results: []FetchResult{{ID: "a", Incarnation: "1", Roots: [roots]RootResult{{Groups: groups(pods)}, {Failed: "broken off"}}}}}
	open, silent := Reference(), Reference()
	open.Knowledge.FailClosed = false
	silent.Discovery.Incomplete = IncompleteAsComplete
	for _, c := range []struct {
		name   string
		policy Policy
		events []Event
		want   Reason
	}{
		{"all peers have said what they serve", Reference(), known, ""},
		{"a peer has not", Reference(), unheard, ReasonUnknown},
		{"a peer has appeared, and was not asked", Reference(), with(known, PeerAppeared{ID: "b", Incarnation: "1"}), ReasonUnknown},
		{"it has appeared and gone", Reference(), with(known, PeerAppeared{ID: "b", Incarnation: "1"}, PeerGone{ID: "b"}), ""},
		{"only its address is known: it has no lease", Reference(), with(known, PeerAddress{ID: "b", Address: "b.test:6443"}), ""},
		{"one document has come", Reference(), with(unheard, halfHeard), ReasonUnknown},
		{"both have come", Reference(), with(unheard, halfHeard, otherHalf), ""},
		{"a peer has restarted, and may be another version", Reference(), with(known, PeerAppeared{ID: "a", Incarnation: "2"}), ReasonUnknown},
		{"a later fetch has failed", Reference(), with(known, unheard[3]), ""},
		{"a peer without a document is gone", Reference(), with(unheard, PeerGone{ID: "a"}), ""},
		{"the lease watch has stalled", Reference(), with(known, LeaseWatch{true}), ReasonWatchStalled},
		{"the lease watch has resumed", Reference(), with(known, LeaseWatch{true}, LeaseWatch{false}), ""},
		{"before synchronisation", Reference(), unheard[:4], ""},
		{"unknown resources count as absent", open, unheard, ""},
		{"as if complete", silent, unheard, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := NewTable(c.policy, "self")
			for _, e := range c.events {
				next := table.Observe(e)
				if next.Incomplete() != table.Incomplete() && next.DocumentGeneration() == table.DocumentGeneration() {
					t.Errorf("%#v: the mark changes, and the generation does not", e)
				}
				table = next
			}
			if got := table.incompleteReason(); got != c.want || table.Incomplete() != (c.want != "") {
				t.Errorf("%q, incomplete %v; want %q", got, table.Incomplete(), c.want)
			}
		})
	}
}

// clientOf is a discovery client that asks the handler. Its local server knows the legacy formats.
func clientOf(t *testing.T, p Policy, events []Event, legacy bool) *clientdiscovery.DiscoveryClient {
	t.Helper()
	s := newShell(t, p, events, neverAsked(t))
	core, named := discovery.NewDocument("/api", readable(pods)), discovery.NewDocument("/apis", readable(jobs))
	s.local.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api":
			core.ServeHTTP(w, r)
		case "/api/v1":
			core.ServeVersion(w, r, "", "v1")
		default:
			parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
			if len(parts) != 3 || !named.ServeVersion(w, r, parts[1], parts[2]) {
				http.NotFound(w, r)
			}
		}
	})
	client, err := clientdiscovery.NewDiscoveryClientForConfig(&rest.Config{Host: "https://server.test", Transport: &cutOff{shell: s, header: "as it is"}, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	client.UseLegacyDiscovery = legacy
	return client
}

// The test measures what each value of the switch does to a client of client-go while the resources
// of a live peer are unknown. docs/proxy.md has these results. A namespace controller and a
// resource quota act on the error of ServerPreferredResources; kubectl and most controllers map
// kinds.
func TestWhatIncompleteDiscoveryCosts(t *testing.T) {
	for _, c := range []struct {
		incomplete IncompletePolicy
		told       string // the error of ServerPreferredResources
		usable     bool   // what the local server serves can be found
	}{
		{IncompleteAsComplete, "", true},
		{IncompleteMarked, "failed: " + IncompleteGroup + "/" + IncompleteVersion, true},
		{IncompleteRefused, "503", false},
	} {
		for _, legacy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, legacy %v", c.incomplete, legacy), func(t *testing.T) {
				p := Reference()
				p.Discovery.Incomplete = c.incomplete
				client := clientOf(t, p, unheard, legacy)
				lists, err := client.ServerPreferredResources()
				told := ""
				if failed := new(clientdiscovery.ErrGroupDiscoveryFailed); errors.As(err, &failed) {
					for gv := range failed.Groups { // one, or the test fails
						told += "failed: " + gv.String()
					}
				} else if apierrors.IsServiceUnavailable(err) {
					told = "503"
				} else if err != nil {
					told = err.Error()
				}
				if told != c.told {
					t.Errorf("ServerPreferredResources: %q (%v), want %q", told, err, c.told)
				}
				var listed []string
				for _, list := range lists {
					for _, r := range list.APIResources {
						listed = append(listed, list.GroupVersion+" "+r.Name)
					}
				}
				var want []string
				if c.usable {
					want = []string{"batch/v1 jobs", "v1 pods"}
				}
				slices.Sort(listed)
				if diff := cmp.Diff(want, listed); diff != "" {
					t.Errorf("lists (-want +got):\n%s", diff)
				}
				found, err := restmapper.GetAPIGroupResources(client)
				if c.usable != (err == nil) {
					t.Fatalf("map kinds: %v", err)
				}
				if c.usable {
					if _, err := restmapper.NewDiscoveryRESTMapper(found).ResourceFor(schema.GroupVersionResource{Resource: "jobs"}); err != nil {
						t.Errorf("map jobs: %v", err)
					}
				}
			})
		}
	}
}

// The mark disappears as soon as the peer's resources are known, or the peer is gone.
func TestMarkEnds(t *testing.T) {
	for name, more := range map[string]Event{
		"it has said what it serves": Fetched{At: epoch, Results: capablePeers(nil, "a")[3].(Fetched).Results},
		"it has gone":                PeerGone{ID: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			_, lists, err := clientOf(t, Reference(), with(unheard, more), false).ServerGroupsAndResources()
			if err != nil || len(lists) == 0 {
				t.Errorf("%d lists, %v", len(lists), err)
			}
		})
	}
}

func TestMarkIsOnlyShown(t *testing.T) {
	const path = "/apis/" + IncompleteGroup
	s := newShell(t, Reference(), unheard, neverAsked(t))
	if got := s.ask("GET", path, ""); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"groupVersion":"`+IncompleteGroup+`/v1"`) {
		t.Errorf("the group: %d %s", got.Code, got.Body)
	}
	got := s.ask("GET", path+"/v1", "")
	if got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), "a: unknown authority") || got.Header().Get("Retry-After") != "" {
		t.Errorf("the version: %d %v %s", got.Code, got.Header(), got.Body)
	}
	if got := s.ask("GET", path+"/v2", ""); got.Code != http.StatusServiceUnavailable {
		t.Errorf("another version, which the peer may serve: %d %s", got.Code, got.Body)
	}
	s.local.body = `{"paths":{}}`
	if got := s.ask("GET", "/openapi/v3", ""); strings.Contains(got.Body.String(), IncompleteGroup) {
		t.Errorf("OpenAPI: %s", got.Body)
	}
	if got := s.ask("GET", "/api", "", "Accept", discovery.AcceptV2); strings.Contains(got.Body.String(), IncompleteGroup) {
		t.Errorf("/api: %s", got.Body)
	}
	if got := s.ask("GET", "/apis", "", "Accept", discovery.AcceptV2NoPeer); got.Body.String() != s.local.body {
		t.Errorf("a resource of the local server: %s", got.Body)
	}
	s = newShell(t, Reference(), capablePeers(nil, "a"), neverAsked(t))
	if got := s.ask("GET", path+"/v1", ""); got.Body.String() != "local" {
		t.Errorf("without a mark: %d %s", got.Code, got.Body)
	}
}
