package sidecar

import (
	"context"
	"crypto/x509"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	kubefilters "k8s.io/apiserver/pkg/endpoints/filters"
	kubeserverfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/client-go/kubernetes/scheme"
)

// kubeAPIServer is an apiserver whose resources are behind the real filters of a kube-apiserver
// (k8s.io/apiserver, DefaultBuildHandlerChain), in their order and by HTTP/2 with its windows
// (secure_serving.go). Users named rightless-… may do nothing. The rest of the fake, which only the
// sidecar itself uses, is behind the filter of --goaway-chance.
type kubeAPIServer struct {
	*apiserver
	goawayChance float64

	mu    sync.Mutex
	wrote map[string]int // how often each Audit-ID was written, with its whole body
	bytes int            // read of request bodies

	// answer answers what has passed the filters. Nil: it reads the body and answers "{}".
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

func (k *kubeAPIServer) filtered(front *x509.CertPool, fake http.Handler) http.Handler {
	longRunning := kubeserverfilters.BasicLongRunningRequestCheck(sets.NewString("watch", "proxy"), sets.NewString("attach", "exec", "proxy", "log", "portforward"))
	one := func(name string) headerrequest.StaticStringSlice { return headerrequest.StaticStringSlice{name} }
	tokens := authenticator.TokenFunc(k.token)
	known := union.New(headerrequest.NewDynamicVerifyOptionsSecure(
		func() (x509.VerifyOptions, bool) {
			return x509.VerifyOptions{Roots: front, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true
		},
		one("front-proxy-client"), one("X-Remote-User"), one("X-Remote-Uid"), one("X-Remote-Group"), one("X-Remote-Extra-")),
		bearertoken.New(tokens), websocket.NewProtocolAuthenticator(tokens))
	h := kubefilters.WithAuthorization(http.HandlerFunc(k.serveResource), k, scheme.Codecs)
	h = kubeserverfilters.WithMaxInFlightLimit(h, 400, 200, longRunning)
	h = kubefilters.WithAuthentication(h, group.NewAuthenticatedGroupAdder(known), kubefilters.Unauthorized(scheme.Codecs), nil, nil)
	h = kubeserverfilters.WithTimeoutForNonLongRunningRequests(h, longRunning)
	byPath := h
	h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/apis/") && k.serves(r.URL.Path) {
			byPath.ServeHTTP(w, r)
			return
		}
		fake.ServeHTTP(w, r)
	})
	if k.goawayChance > 0 {
		h = kubeserverfilters.WithProbabilisticGoaway(h, k.goawayChance)
	}
	return kubefilters.WithRequestInfo(h, infos)
}

// Authorize implements [authorizer.UnconditionalAuthorizer].
func (k *kubeAPIServer) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if strings.HasPrefix(a.GetUser().GetName(), "rightless-") {
		return authorizer.DecisionDeny, "it has no rights", nil
	}
	return authorizer.DecisionAllow, "", nil
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

// written returns the number of different writes, and those that were carried out repeatedly.
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

// behindKubeFilters puts the filters and the windows of a kube-apiserver in front of a fake.
func behindKubeFilters(t *testing.T, a *apiserver, adjust func(*kubeAPIServer)) *kubeAPIServer {
	k := &kubeAPIServer{apiserver: a, wrote: map[string]int{}}
	if adjust != nil {
		adjust(k)
	}
	filtered := k.filtered(a.front, a.filtered(http.HandlerFunc(a.serve)))
	a.set(func() { a.filters = filtered })
	return k
}
