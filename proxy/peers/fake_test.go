package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// roundTrip is a transport without a network. A nil roundTrip reaches no server.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	if f == nil {
		return nil, errors.New("nobody is there")
	}
	return f(r)
}

// server is a kube-apiserver that serves only discovery. A test may change its fields between
// requests, under mu.
type server struct {
	mu       sync.Mutex
	version  string
	api      discovery.Groups
	apis     discovery.Groups
	noETag   bool
	failing  map[string]http.HandlerFunc // by path: the handler that answers instead
	requests []*http.Request
	statuses []int
}

// take returns the requests since its last call.
func (s *server) take() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.requests
	s.requests = nil
	return taken
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Clone(r.Context()))
	fail := s.failing[r.URL.Path]
	version, api, apis, noETag := s.version, s.api, s.apis, s.noETag
	s.mu.Unlock()
	if fail != nil {
		fail(w, r)
		return
	}
	switch r.URL.Path {
	case "/version":
		fmt.Fprintf(w, `{"gitVersion":%q}`, version)
	case "/api":
		s.document(w, r, api, noETag)
	case "/apis":
		s.document(w, r, apis, noETag)
	default:
		http.NotFound(w, r)
	}
}

func (s *server) document(w http.ResponseWriter, r *http.Request, groups discovery.Groups, noETag bool) {
	body, err := json.Marshal(apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"}, Items: groups,
	})
	if err != nil {
		panic(err)
	}
	hash := fnv.New64a()
	hash.Write(body)
	etag := fmt.Sprintf("%q", fmt.Sprint(hash.Sum64()))
	if !noETag {
		w.Header().Set("ETag", etag)
	}
	status := http.StatusOK
	if !noETag && r.Header.Get("If-None-Match") == etag {
		status = http.StatusNotModified
	}
	s.mu.Lock()
	s.statuses = append(s.statuses, status)
	s.mu.Unlock()
	if status != http.StatusOK {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", discovery.AcceptV2)
	_, _ = w.Write(body)
}

func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// taken returns the status codes of documents since the last call.
func (s *server) taken() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	statuses := s.statuses
	s.statuses = nil
	return statuses
}

// respond is a handler that answers with a status code.
func respond(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) }
}

// network reaches servers by address without sockets, so that synctest's clock can advance.
type network struct {
	mu      sync.Mutex
	servers map[string]http.Handler
	down    map[string]error // by address
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	h, err := n.servers[r.URL.Host], n.down[r.URL.Host]
	n.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if h == nil {
		return nil, errors.New("nobody at " + r.URL.Host)
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	recorder := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.ServeHTTP(recorder, r)
	}()
	select {
	case <-done:
	case <-r.Context().Done():
		<-done // the handlers of these tests end with the context
		return nil, r.Context().Err()
	}
	response := recorder.Result()
	body, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, err
}

func (n *network) set(address string, down error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down == nil {
		n.down = map[string]error{}
	}
	n.down[address] = down
}

// start runs something in the background. The returned function ends it, once, and waits for that.
func start(t *testing.T, run func(context.Context) error) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return sync.OnceFunc(func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// newDynamic makes a client of a cluster with objects that define extensions.
func newDynamic(objects ...runtime.Object) *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{customResourceDefinitions: "CustomResourceDefinitionList", apiServices: "APIServiceList"}, objects...)
}

// hang is a handler that never answers.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func newServer(t *testing.T, version string, apis ...string) *server {
	t.Helper()
	return &server{version: version, api: document("v1 pods"), apis: document(apis...), failing: map[string]http.HandlerFunc{}}
}

// quiet is a logger for servers whose clients close connections on purpose.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
