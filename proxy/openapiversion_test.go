package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// cronjobs are in batch/v1. The local server serves batch/v1 without cronjobs.
var cronjobs = Resource{Group: "batch", Version: "v1", Resource: "cronjobs"}

const batchPath = "/openapi/v3/apis/batch/v1"

// describes returns a server's description of resources of batch/v1. Every path names its author.
func describes(who string, resources ...string) string {
	var paths []string
	for _, r := range resources {
		paths = append(paths, fmt.Sprintf(`"/apis/batch/v1/namespaces/{namespace}/%s":{"get":{"description":%q}}`, r, who))
	}
	return `{"openapi":"3.0.0","info":{"title":"Kubernetes"},"paths":{` + strings.Join(paths, ",") + `}}`
}

// describing serves a server's OpenAPI: an index and the description of batch/v1. It has hashes and
// entity tags like a kube-apiserver.
type describing struct {
	mu     sync.Mutex
	of     string // the description; "": 403
	asked  map[string]int
	broken error // of every fetch
	// unhashed leaves the hash out of the index, so that nobody can know whether the description
	// has changed.
	unhashed bool
}

func (d *describing) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func (d *describing) document(path string) (body []byte, etag string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked == nil {
		d.asked = map[string]int{}
	}
	d.asked[path]++
	hash := contentTag("", []byte(d.of))
	switch {
	case d.broken != nil:
		return nil, "", d.broken
	case path == "/openapi/v3" && d.unhashed:
		return fmt.Appendf(nil, `{"paths":{"apis/batch/v1":{"serverRelativeURL":%q}}}`, batchPath), "", nil
	case path == "/openapi/v3":
		return fmt.Appendf(nil, `{"paths":{"apis/batch/v1":{"serverRelativeURL":"%s?hash=%s"}}}`, batchPath, hash), "", nil
	case path == batchPath:
		return []byte(d.of), `"` + hash + `"`, nil
	}
	return nil, "", errors.New("it answered 404")
}

func (d *describing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, etag, err := d.document(r.URL.Path)
	switch {
	case err != nil:
		http.Error(w, "404 page not found", http.StatusNotFound)
	case r.URL.Query().Get("hash") != "" && r.URL.Query().Get("hash") != strings.Trim(etag, `"`):
		http.Redirect(w, r, r.URL.Path+"?hash="+strings.Trim(etag, `"`), http.StatusMovedPermanently)
	case d.of == "":
		http.Error(w, "forbidden", http.StatusForbidden)
	default:
		w.Header().Set("ETag", etag)
		w.Write(body)
	}
}

// described is a shell with a local server and peers, all of which describe batch/v1.
type described struct {
	*shell
	own   *describing
	peers map[ServerID]*describing
	clock time.Time
}

func newDescribed(t *testing.T, peers map[ServerID]*describing, fetched ...FetchResult) *described {
	t.Helper()
	d := &described{own: &describing{of: describes("local", "jobs")}, peers: peers, clock: epoch}
	events := []Event{LocalFetched{Version: "v1.36.3", Roots: [roots]discovery.Groups{groups(pods), groups(jobs)}, At: epoch}}
	for _, f := range fetched {
		events = append(events, PeerAppeared{ID: f.ID, Incarnation: f.Incarnation}, PeerAddress{ID: f.ID, Address: string(f.ID) + ".test:6443"})
	}
	events = append(events, Fetched{At: epoch, Results: fetched}, Synced{})
	d.shell = newShell(t, Reference(), events, neverAsked(t), fromPeers, func(c *Config) {
		c.Now = func() time.Time { return d.clock }
		c.Document = func(_ context.Context, p PeerView, path string) ([]byte, string, error) {
			return d.peers[p.ID].document(path)
		}
	})
	d.local.Handler = d.own
	return d
}

// newer is the fetched discovery of a peer of a version: jobs, and the resources that the local
// server lacks.
func newer(id ServerID, version string, more ...Resource) FetchResult {
	list := groups(append([]Resource{jobs}, more...)...)
	for g := range list {
		for v := range list[g].Versions {
			for r := range list[g].Versions[v].Resources {
				list[g].Versions[v].Resources[r].ResponseKind = &metav1.GroupVersionKind{Kind: list[g].Versions[v].Resources[r].Resource}
			}
		}
	}
	return FetchResult{ID: id, Incarnation: "1", Version: version, Roots: [roots]RootResult{{Groups: groups(pods)}, {Groups: list}}}
}

// authors returns the author of each resource's paths in the description of batch/v1.
func (d *described) authors(t *testing.T, header ...string) map[string]string {
	t.Helper()
	got := d.ask("GET", batchPath, "", append([]string{"Accept", "application/json"}, header...)...)
	var document struct {
		Paths map[string]struct{ Get struct{ Description string } }
	}
	if err := json.Unmarshal(got.Body.Bytes(), &document); err != nil || got.Code != 200 {
		t.Fatalf("%d %s: %v", got.Code, got.Body, err)
	}
	authors := map[string]string{}
	for path, item := range document.Paths {
		authors[path[strings.LastIndex(path, "/")+1:]] = item.Get.Description
	}
	return authors
}

// indexedURL returns the URL of batch/v1 in the index.
func (d *described) indexedURL(t *testing.T) string {
	t.Helper()
	got := d.ask("GET", "/openapi/v3", "")
	index, err := discovery.DecodeOpenAPI(got.Body.Bytes())
	if err != nil {
		t.Fatalf("%d %s: %v", got.Code, got.Body, err)
	}
	return index["apis/batch/v1"]
}

func TestOpenAPIOfASharedVersionIsMerged(t *testing.T) {
	suspend := Resource{Group: "batch", Version: "v1", Resource: "suspends"}
	peer := func(who string, resources ...string) *describing {
		return &describing{of: describes(who, resources...)}
	}
	for name, c := range map[string]struct {
		peers   map[ServerID]*describing
		fetched []FetchResult
		want    map[string]string
	}{
		"resources of the peer alone are the peer's": {
			map[ServerID]*describing{"a": peer("a", "jobs", "cronjobs")}, []FetchResult{newer("a", "v1.37.1", cronjobs)},
			map[string]string{"jobs": "local", "cronjobs": "a"},
		},
		"resources that no server lists are left out": {
			map[ServerID]*describing{"a": peer("a", "jobs", "cronjobs", "gone")}, []FetchResult{newer("a", "v1.37.1", cronjobs)},
			map[string]string{"jobs": "local", "cronjobs": "a"},
		},
		"of several peers the newest that serves it": {
			map[ServerID]*describing{"a": peer("a", "cronjobs", "suspends"), "b": peer("b", "cronjobs"), "c": peer("c", "cronjobs")},
			[]FetchResult{newer("a", "v1.37.1", cronjobs, suspend), newer("b", "v1.38.0", cronjobs), newer("c", "v1.38.0", cronjobs)},
			map[string]string{"jobs": "local", "cronjobs": "b", "suspends": "a"},
		},
		"the order of the peers does not matter": {
			map[ServerID]*describing{"a": peer("a", "cronjobs"), "b": peer("b", "cronjobs"), "c": peer("c", "cronjobs", "suspends")},
			[]FetchResult{newer("c", "v1.37.1", cronjobs, suspend), newer("b", "v1.38.0", cronjobs), newer("a", "v1.38.0", cronjobs)},
			map[string]string{"jobs": "local", "cronjobs": "a", "suspends": "c"},
		},
		"a peer that cannot be asked is replaced by another": {
			map[ServerID]*describing{"a": {broken: errors.New("it could not be reached")}, "b": peer("b", "cronjobs")},
			[]FetchResult{newer("a", "v1.38.0", cronjobs), newer("b", "v1.37.1", cronjobs)},
			map[string]string{"jobs": "local", "cronjobs": "b"},
		},
		"a peer whose description is broken is replaced by another": {
			map[ServerID]*describing{"a": {of: "<html>"}, "b": peer("b", "cronjobs")},
			[]FetchResult{newer("a", "v1.38.0", cronjobs), newer("b", "v1.37.1", cronjobs)},
			map[string]string{"jobs": "local", "cronjobs": "b"},
		},
		"without any peer that describes it, it is the local server's": {
			map[ServerID]*describing{"a": peer("a", "jobs")}, []FetchResult{newer("a", "v1.37.1", cronjobs)},
			map[string]string{"jobs": "local"},
		},
		"if peers serve no more, it is the local server's": {
			map[ServerID]*describing{"a": peer("a", "jobs", "cronjobs")}, []FetchResult{newer("a", "v1.37.1")},
			map[string]string{"jobs": "local"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDescribed(t, c.peers, c.fetched...)
			if diff := cmp.Diff(c.want, d.authors(t)); diff != "" {
				t.Errorf("the servers of the descriptions (-want +got):\n%s", diff)
			}
		})
	}
	one := func(t *testing.T) *described {
		return newDescribed(t, map[ServerID]*describing{"a": peer("a", "jobs", "cronjobs")}, newer("a", "v1.37.1", cronjobs))
	}
	t.Run("a peer gets the local server's", func(t *testing.T) {
		if diff := cmp.Diff(map[string]string{"jobs": "local"}, one(t).authors(t, HopHeader, "true")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("a caller that may not see the local server's description gets its refusal, and no peer is asked", func(t *testing.T) {
		d := one(t)
		d.own.of = ""
		for _, path := range []string{batchPath, "/openapi/v3"} {
			if got := d.ask("GET", path, ""); got.Code != 403 {
				t.Errorf("%s: %d %s", path, got.Code, got.Body)
			}
		}
		if asked := d.peers["a"].asked; len(asked) > 0 {
			t.Errorf("the peer was asked for %v", asked)
		}
	})
	t.Run("a peer is asked once", func(t *testing.T) {
		d := one(t)
		for range 3 {
			d.authors(t)
			d.indexedURL(t)
		}
		if diff := cmp.Diff(map[string]int{"/openapi/v3": 1, batchPath: 1}, d.peers["a"].asked); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
	})
	t.Run("earlier knowledge stays while the peer cannot be asked", func(t *testing.T) {
		d := one(t)
		d.authors(t)
		d.peers["a"].set(func() { d.peers["a"].broken = errors.New("it could not be reached") })
		for range 3 {
			d.clock = d.clock.Add(askAgainAfter - time.Second)
			if diff := cmp.Diff(map[string]string{"jobs": "local", "cronjobs": "a"}, d.authors(t)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		if n := d.peers["a"].asked["/openapi/v3"]; n != 2 {
			t.Errorf("in %s the index was asked for %d times; want 2: once more, and not again within %s", 3*(askAgainAfter-time.Second), n, askAgainAfter)
		}
	})
	t.Run("a peer that recovers is merged", func(t *testing.T) {
		d := one(t)
		d.peers["a"].set(func() { d.peers["a"].broken = errors.New("it could not be reached") })
		if got := d.authors(t); len(got) != 1 {
			t.Errorf("%v", got)
		}
		d.peers["a"].set(func() { d.peers["a"].broken = nil })
		d.clock = d.clock.Add(askAgainAfter)
		if got := d.authors(t); len(got) != 2 {
			t.Errorf("%v", got)
		}
	})
}

// A client that has the hash from the index keeps the description for ever. So the hash must change
// when the description changes, and a client must not keep the answer for any other hash.
func TestOpenAPIHashesChangeWithTheDescription(t *testing.T) {
	peer := &describing{of: describes("a", "jobs", "cronjobs")}
	d := newDescribed(t, map[ServerID]*describing{"a": peer}, newer("a", "v1.37.1", cronjobs))
	seen, last := map[string]string{}, ""
	check := func(when string) {
		t.Helper()
		u := d.indexedURL(t)
		got := d.ask("GET", u, "", "Accept", "application/json")
		if got.Code != 200 || got.Header().Get("Cache-Control") != "public, immutable" || got.Header().Get("Expires") == "" {
			t.Errorf("%s, with the hash of the index: %d %v", when, got.Code, got.Header())
		}
		parsed, err := url.Parse(u)
		if hash := parsed.Query().Get("hash"); err != nil || hash == "" || got.Header().Get("ETag") != `"`+hash+`"` {
			t.Errorf("%s: the index has %s, the entity tag is %s", when, u, got.Header().Get("ETag"))
		}
		if before, ok := seen[u]; ok && before != got.Body.String() || u == last {
			t.Errorf("%s: the URL %s belongs to another description", when, u)
		}
		if last != "" {
			old := d.ask("GET", last, "", "Accept", "application/json")
			if old.Code != 200 || old.Header().Get("Cache-Control") != "no-cache, private" || old.Header().Get("Expires") != "" || old.Body.String() != got.Body.String() {
				t.Errorf("%s, with an old hash: %d %v", when, old.Code, old.Header())
			}
		}
		seen[u], last = got.Body.String(), u
	}
	check("at first")
	d.own.set(func() { d.own.of = describes("local, changed", "jobs") })
	check("after the local server's has changed")
	peer.set(func() { peer.of = describes("a, changed", "jobs", "cronjobs") })
	d.clock = d.clock.Add(askAgainAfter)
	check("after the peer's has changed")
	d.peers["b"] = &describing{of: describes("b", "cronjobs")}
	d.store.Observe(PeerAppeared{ID: "b", Incarnation: "1"}, PeerAddress{ID: "b", Address: "b.test:6443"},
		Fetched{At: epoch, Results: []FetchResult{newer("b", "v1.38.0", cronjobs)}})
	check("after a newer peer has appeared")
	d.store.Observe(PeerGone{ID: "a"}, PeerGone{ID: "b"})
	if u := d.ask("GET", "/openapi/v3", "").Body.String(); !strings.Contains(u, contentTag("", []byte(d.own.of))) {
		t.Errorf("without peers, the index is not the local server's: %s", u)
	}
}

// If a peer cannot give a document, or it cannot be decoded, the log names the document. It is not
// fetched again for every request.
func TestDocumentsThatAreLeftOutAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		peer *describing
		says string
	}{
		"unreachable": {&describing{broken: errors.New("it could not be reached")}, "it could not be reached"},
		"broken":      {&describing{of: "<html>"}, "decode an OpenAPI description"},
		"of nothing":  {&describing{of: describes("a", "jobs")}, "describes none of the resources"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDescribed(t, map[ServerID]*describing{"a": c.peer}, newer("a", "v1.37.1", cronjobs))
			var log strings.Builder
			d.log = slog.New(slog.NewTextHandler(&log, nil))
			for range 5 {
				d.authors(t)
			}
			if strings.Count(log.String(), "peer=a") != 1 || !strings.Contains(log.String(), c.says) {
				t.Errorf("the log is\n%s", log.String())
			}
			if n := c.peer.asked[batchPath]; n > 1 {
				t.Errorf("the description was asked for %d times", n)
			}
		})
	}
}

func TestPeerDocumentsAreBounded(t *testing.T) {
	var kept peerDocuments
	body := make([]byte, maxPeerDocuments/4)
	key := func(i int) documentKey { return documentKey{"a", fmt.Sprint(i)} }
	for i := range 10 {
		kept.put(key(i), &peerDocument{body: body})
		kept.get(key(0))
	}
	var left []int
	for i := range 10 {
		if kept.get(key(i)) != nil {
			left = append(left, i)
		}
	}
	if want := []int{0, 8, 9}; !slices.Equal(left, want) || kept.size > maxPeerDocuments {
		t.Errorf("%v are kept, %d bytes; want %v: the last used ones", left, kept.size, want)
	}
}

// Requests that need the same document of a peer at the same time share one fetch.
func TestPeerDocumentsAreFetchedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetches := map[string]int{}
		var answer chan struct{} // the peer answers when it is closed
		s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(*http.Request) (*http.Response, error) { return says(200, ""), nil }), func(c *Config) {
			c.Document = func(_ context.Context, _ PeerView, path string) ([]byte, string, error) {
				fetches[path]++ // without a lock: there is one fetch at a time
				<-answer
				if path == "/bad" {
					return nil, "", errors.New("it does not answer")
				}
				return []byte(path), "", nil
			}
		})
		for path, good := range map[string]bool{"/good": true, "/bad": false} {
			answer = make(chan struct{})
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					got, err := s.peerDocument(PeerView{ID: "a", Address: "a.peer:443"}, path, "state", 0)
					if good != (err == nil) || good && string(got.body) != path || !good && got != nil {
						t.Errorf("%s: %v, error %v", path, got, err)
					}
				})
			}
			synctest.Wait() // all of them wait
			close(answer)
			all.Wait()
			if fetches[path] != 1 {
				t.Errorf("%s was fetched %d times by 50 requests, want once", path, fetches[path])
			}
		}
	})
}

// The description of a version is stored once only, and the memory for all descriptions is bounded.
func TestDescriptionsAreBounded(t *testing.T) {
	kept := newDescriptions()
	inTurn := kept.inTurn(t.Context(), func() {
		for i := range 5 {
			body := []byte(strings.Repeat(" ", maxDescriptions/3))
			kept.put(fmt.Sprint(i%4), discovery.NewOpenAPIDescription(fmt.Sprint(i), body))
			if total := len(kept.kept) * len(body); total > maxDescriptions || total != kept.size {
				t.Errorf("%d bytes are kept, counted as %d", total, kept.size)
			}
		}
		left, cancel := context.WithCancel(t.Context())
		cancel()
		if kept.inTurn(left, func() {}) {
			t.Error("a second one has its turn")
		}
	})
	if !inTurn {
		t.Error("the first one has no turn")
	}
}
