//go:build planted

package apiserver

//lint:file-ignore SA1019 Endpoints are what kube-apiserver keeps in etcd

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/peers"
)

// planted is the name of the defect of this build. The linker sets it; see package binaries,
// Store.Planted.
var planted string

// plantedDefect is a mistake that the proxy could have. Each field that is not nil makes it.
type plantedDefect struct {
	policy  func(*proxy.Policy)
	options func(*Options)
	send    func(*http.Request)                 // changes a request to a peer
	receive func(*http.Request, *http.Response) // changes a peer's answer
	answer  func(status int) int                // changes the status of an answer to a client
	count   func(status int) int                // changes the status that the metrics count
	// seats bounds the requests to peers at a time, whoever sends them. Further ones wait.
	seats chan struct{}
}

var plantedDefects = map[string]plantedDefect{
	"discovery-not-merged":       {policy: func(p *proxy.Policy) { p.Discovery.Merge = false }},
	"subresources-not-routed":    {policy: func(p *proxy.Policy) { p.Routing.Subresources = false }},
	"discovery-paths-not-routed": {policy: func(p *proxy.Policy) { p.Routing.DiscoveryPaths = false }},
	"no-failover":                {policy: func(p *proxy.Policy) { p.Routing.Attempts = 1 }},
	"extensions-from-peers":      {policy: func(p *proxy.Policy) { p.Knowledge.Extensions = proxy.ExtensionsIgnored }},
	"forgets-when-a-fetch-fails": {policy: func(p *proxy.Policy) { p.Knowledge.KeepLastGood = false }},
	"unknown-counts-as-absent":   {policy: func(p *proxy.Policy) { p.Knowledge.FailClosed = false }},
	"hop-not-refused":            {policy: func(p *proxy.Policy) { p.Routing.RefuseAtHop = false }},
	"hop-header-believed":        {policy: func(p *proxy.Policy) { p.Quirks.TrustAnyHop = true }},
	"older-formats-not-merged":   {policy: func(p *proxy.Policy) { p.Discovery.Everywhere = false }},
	"groups-lost": {send: func(r *http.Request) {
		for name := range r.Header {
			if strings.EqualFold(name, "X-Remote-Group") {
				delete(r.Header, name)
				r.Header["X-Remote-Group"] = []string{"system:authenticated"}
			}
		}
	}},
	"impersonation-lost": {send: func(r *http.Request) {
		for name := range r.Header {
			if strings.HasPrefix(strings.ToLower(name), "impersonate-") {
				delete(r.Header, name)
			}
		}
	}},
	"client-address-lost": {send: func(r *http.Request) { r.Header.Del("X-Forwarded-For") }},
	"created-becomes-ok": {receive: func(_ *http.Request, a *http.Response) {
		if a.StatusCode == http.StatusCreated {
			a.StatusCode = http.StatusOK
		}
	}},
	"query-lost":        {send: func(r *http.Request) { r.URL.RawQuery = "" }},
	"called-plain-text": {receive: func(_ *http.Request, a *http.Response) { a.Header.Set("Content-Type", "text/plain") }},
	"last-object-lost": {receive: func(r *http.Request, a *http.Response) {
		if r.Method != http.MethodGet || r.URL.Query().Has("watch") || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/json") {
			return
		}
		body, err := io.ReadAll(a.Body)
		if err != nil {
			a.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err}))
			return
		}
		end, last := bytes.LastIndex(body, []byte("]}")), bytes.LastIndex(body, []byte(",{\"metadata\""))
		if bytes.Contains(body, []byte(`List"`)) && 0 < last && last < end {
			body = append(body[:last:last], body[end:]...)
		}
		a.Body, a.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		a.Header.Del("Content-Length")
	}},
	"object-altered": {receive: func(r *http.Request, a *http.Response) {
		if r.Method != http.MethodGet || r.URL.Query().Has("watch") || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/json") {
			return
		}
		body, err := io.ReadAll(a.Body)
		body = bytes.ReplaceAll(body, []byte(`:"skewproof"`), []byte(`:"skewproog"`))
		a.Body = io.NopCloser(bytes.NewReader(body))
		if err != nil {
			a.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err}))
		}
	}},
	"seats-of-all-callers":    {seats: make(chan struct{}, 60)}, // less than a crowd needs
	"all-counted-as-ok":       {count: func(int) int { return http.StatusOK }},
	"leavers-given-up":        {policy: func(p *proxy.Policy) { p.Knowledge.Leaving = 0 }},
	"dead-peers-waited-for":   {policy: func(p *proxy.Policy) { p.Routing.Silence = 0 }},
	"address-never-withdrawn": {options: func(o *Options) { o.Etcd = neverWithdrawn{o.Etcd} }},
	"plain-servers-not-found": {options: func(o *Options) { o.Etcd = noMasters{o.Etcd} }},
	"unavailable-is-not-found": {answer: func(status int) int {
		if status == http.StatusServiceUnavailable {
			return http.StatusNotFound
		}
		return status
	}},
}

// defect returns the defect of this build. A build with the tag but without a defect must not run.
func defect() plantedDefect {
	d, ok := plantedDefects[planted]
	if !ok {
		_, _ = os.Stderr.WriteString("this build has the tag planted and no defect of that name: " + planted + "\n")
		os.Exit(4)
	}
	return d
}

func plantedOptions(o Options) Options {
	d := defect()
	if d.policy != nil {
		d.policy(&o.Policy)
	}
	if d.options != nil {
		d.options(&o)
	}
	return o
}

func plantedTransport(to http.RoundTripper) http.RoundTripper { return plantedTripper{to, defect()} }

type plantedTripper struct {
	http.RoundTripper
	plantedDefect
}

func (t plantedTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.send != nil {
		r = r.Clone(r.Context())
		t.send(r)
	}
	if t.seats != nil {
		select {
		case t.seats <- struct{}{}:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	answer, err := t.RoundTripper.RoundTrip(r)
	if t.seats != nil {
		if err != nil || answer.StatusCode == http.StatusSwitchingProtocols {
			<-t.seats
		} else {
			answer.Body = &seatedBody{ReadCloser: answer.Body, leave: sync.OnceFunc(func() { <-t.seats })}
		}
	}
	if err == nil && t.receive != nil && answer.StatusCode != http.StatusSwitchingProtocols {
		t.receive(r, answer)
	}
	return answer, err
}

// plantedHandler changes the answers to clients. Peers get theirs unchanged.
func plantedHandler(h http.Handler, fromPeer func(*http.Request) bool) http.Handler {
	change := defect().answer
	if change == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fromPeer(r) {
			w = plantedWriter{w, change}
		}
		h.ServeHTTP(w, r)
	})
}

// plantedMetrics changes what the metrics get to count.
func plantedMetrics(m proxy.Observer) proxy.Observer {
	change := defect().count
	if change == nil {
		return m
	}
	return plantedObserver{m, change}
}

type plantedObserver struct {
	proxy.Observer
	change func(int) int
}

func (o plantedObserver) Attempted(ctx context.Context, r proxy.Request, a proxy.AttemptResult) {
	if a.Answered {
		a.Code = o.change(a.Code)
	}
	o.Observer.Attempted(ctx, r, a)
}

type plantedWriter struct {
	http.ResponseWriter
	change func(int) int
}

func (w plantedWriter) WriteHeader(status int)      { w.ResponseWriter.WriteHeader(w.change(status)) }
func (w plantedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// seatedBody leaves its seat when the answer has been read or given up.
type seatedBody struct {
	io.ReadCloser
	leave func()
}

func (b *seatedBody) Close() error {
	b.leave()
	return b.ReadCloser.Close()
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// neverWithdrawn leaves the key of a server that ends to its expiry.
type neverWithdrawn struct{ peers.Etcd }

func (neverWithdrawn) Withdraw(context.Context, proxy.ServerID, string) error { return nil }

// noMasters has no addresses of servers that write no key.
type noMasters struct{ peers.Etcd }

func (noMasters) Masters() cache.ListerWatcher {
	return &cache.ListWatch{
		ListFunc:  func(metav1.ListOptions) (runtime.Object, error) { return &corev1.EndpointsList{}, nil },
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}
}
