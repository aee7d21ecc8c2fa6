package sidecar

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// kubeAPIServer is an apiserver that serves its resources in another way. It counts writes, or
// answers as a test wants. It has the same filters in front. Users named rightless-… may do
// nothing.
type kubeAPIServer struct {
	*apiserver
	goawayChance float64

	mu    sync.Mutex
	wrote map[string]int // by Audit-ID: how often the write arrived with its whole body
	bytes int            // bytes that were read of request bodies

	// answer answers requests that have passed the filters. Nil: it reads the body and answers
	// "{}".
	answer http.HandlerFunc
}

// useKubeWindows gives a server the HTTP/2 windows of a kube-apiserver with the default of
// --http2-max-streams-per-connection.
func useKubeWindows(s *http.Server) {
	const window, streams = 256 << 10, 100
	s.IdleTimeout = 90 * time.Second
	s.HTTP2 = &http.HTTP2Config{
		MaxReceiveBufferPerStream: window, MaxReadFrameSize: window, MaxConcurrentStreams: streams, MaxReceiveBufferPerConnection: window * streams,
	}
}

func (k *kubeAPIServer) serveResource(w http.ResponseWriter, r *http.Request) {
	if k.answer != nil {
		k.answer(w, r)
		return
	}
	n, err := io.Copy(io.Discard, r.Body)
	k.mu.Lock()
	k.bytes += int(n)
	if err == nil && r.Method == http.MethodPost {
		k.wrote[r.Header.Get("Audit-Id")]++
	}
	k.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	k.write(w, "application/json", map[string]any{})
}

// written returns the number of different writes, and the writes that were carried out more than
// once.
func (k *kubeAPIServer) written() (n int, twice []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, times := range k.wrote {
		if times > 1 {
			twice = append(twice, id)
		}
	}
	slices.Sort(twice)
	return len(k.wrote), twice
}

// behindKubeFilters makes a stand-in serve its resources as a kubeAPIServer.
func behindKubeFilters(t testing.TB, a *apiserver, adjust func(*kubeAPIServer)) *kubeAPIServer {
	t.Helper()
	k := &kubeAPIServer{apiserver: a, wrote: map[string]int{}}
	if adjust != nil {
		adjust(k)
	}
	filtered := a.filtered(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/apis/") && k.serves(r.URL.Path) {
			k.serveResource(w, r)
			return
		}
		a.serve(w, r)
	}), k.goawayChance)
	a.set(func() {
		a.filters = filtered
		a.forbids = func(at authorizer.Attributes) bool { return strings.HasPrefix(at.GetUser().GetName(), "rightless-") }
	})
	return k
}
