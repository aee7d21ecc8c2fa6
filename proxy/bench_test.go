package proxy_test

import (
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/transport"

	"github.com/skewproof/skewproof/proxy"
)

// BenchmarkProxiedGet is one GET that goes to a peer, through upstream's handler and through this
// package's handler. In memory, the transport costs nothing, so only the handler's own work is
// measured. The other benchmarks use TLS on loopback. Upstream looks up the peer's address in etcd
// for every request (it lists endpoint leases). Here that look-up reads a map, which makes upstream
// look faster.
func BenchmarkProxiedGet(b *testing.B) {
	b.Run("memory/upstream", func(b *testing.B) { benchmarkUpstream(b, nil) })
	b.Run("memory/reference", func(b *testing.B) { benchmarkReference(b, nil) })
	b.Run("tls/upstream", func(b *testing.B) { benchmarkUpstream(b, peerServer(b)) })
	b.Run("tls/reference", func(b *testing.B) { benchmarkReference(b, peerServer(b)) })
}

var wanted = proxy.Resource{Group: "new.k8s.io", Version: "v1", Resource: "gadgets"}

// peerServer is a peer behind a real connection.
func peerServer(b *testing.B) *httptest.Server {
	b.Helper()
	s := httptest.NewUnstartedServer(nil)
	w := &worldPeer{id: "a", serves: documentOf([]proxy.Resource{wanted}, false)}
	s.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		in := &world{peers: map[string]*worldPeer{"": w}}
		r.URL.Host = ""
		response, err := in.RoundTrip(r)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		rw.Header().Set("Content-Type", response.Header.Get("Content-Type"))
		rw.WriteHeader(response.StatusCode)
		_, _ = io.Copy(rw, response.Body)
	})
	s.EnableHTTP2 = true
	s.StartTLS()
	b.Cleanup(s.Close)
	return s
}

// benchmarkWorld is a local server, one peer that serves more than the local server, and a
// transport to the peer.
func benchmarkWorld(server *httptest.Server) (w *world, address string, to *transport.Config) {
	address = "peer-a:6443"
	to = &transport.Config{}
	if server == nil {
		w = &world{peers: map[string]*worldPeer{address: {id: "a", serves: documentOf([]proxy.Resource{wanted}, false)}}}
		to.WrapTransport = func(http.RoundTripper) http.RoundTripper { return w }
	} else {
		w = &world{peers: map[string]*worldPeer{}}
		u, _ := url.Parse(server.URL)
		address = u.Host
		to.TLS.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
	w.local = documentOf(pool[2:3], false)
	return w, address, to
}

func benchmarkUpstream(b *testing.B, server *httptest.Server) {
	w, address, to := benchmarkWorld(server)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	client := fake.NewClientset(identityLease("a", "1"))
	u := startUpstream(ctx, b, "self", newProcess(w.local), to, map[string]string{"a": address}, client, newObjects())
	u.wait()
	if _, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Update(ctx, identityLease("a", "2"), metav1.UpdateOptions{}); err != nil {
		b.Fatal(err)
	}
	measure(b, u.handler)
}

func benchmarkReference(b *testing.B, server *httptest.Server) {
	w, address, to := benchmarkWorld(server)
	store := proxy.NewStore(proxy.Reference(), "self")
	served := documentOf([]proxy.Resource{wanted}, false)
	store.Observe(
		proxy.LocalFetched{Roots: w.local, At: time.Now()},
		proxy.PeerAppeared{ID: "a", Incarnation: "1"}, proxy.PeerAddress{ID: "a", Address: address},
		proxy.Fetched{At: time.Now(), Results: []proxy.FetchResult{{ID: "a", Incarnation: "1", Roots: [2]proxy.RootResult{{Groups: served[0]}, {Groups: served[1]}}}}},
		proxy.Synced{},
	)
	way, err := transport.New(to)
	if err != nil {
		b.Fatal(err)
	}
	h, err := proxy.New(proxy.Config{Store: store, Local: http.HandlerFunc(serveLocal), Transport: way})
	if err != nil {
		b.Fatal(err)
	}
	measure(b, h)
}

// measure waits until the peer answers, and then starts the measurement.
func measure(b *testing.B, h http.Handler) {
	b.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		if _, _, body := ask(h, wanted); body == "peer a" {
			break
		} else if time.Now().After(deadline) {
			b.Fatalf("the peer does not answer: %q", body)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if code, _, body := ask(h, wanted); code != http.StatusOK || body != "peer a" {
			b.Fatalf("%d %q", code, body)
		}
	}
}

// ask sends a request for a resource, as the given user, and returns status, content type and body.
func ask(h http.Handler, r proxy.Resource) (code int, contentType, body string) {
	path := "/apis/" + r.Group + "/" + r.Version + "/" + r.Resource
	if r.Group == "" {
		path = "/api/" + r.Version + "/" + r.Resource
	}
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Header.Set("Accept", "application/json")
	ctx := apirequest.WithUser(request.Context(), &user.DefaultInfo{Name: "alice", Groups: []string{"people"}})
	ctx = apirequest.WithRequestInfo(ctx, &apirequest.RequestInfo{
		IsResourceRequest: true, Path: path, Verb: "list", APIPrefix: "apis", APIGroup: r.Group, APIVersion: r.Version, Resource: r.Resource,
	})
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request.WithContext(ctx))
	return recorder.Code, recorder.Header().Get("Content-Type"), recorder.Body.String()
}
