package proxy_test

import (
	"context"
	"net/http"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/peers"
)

// subject is this package under a preset, with the real sources of package peers, in front of a
// process of the local server.
type subject struct {
	store    *proxy.Store
	sources  *peers.Sources
	handlers []http.Handler // one handler for each choice among equal peers
}

// choices is the largest number of peers among which a handler may choose.
const choices = 3

// startSubject starts a subject. It has synced one second later.
func startSubject(ctx context.Context, t testing.TB, policy proxy.Policy, local *process, to http.RoundTripper, addresses map[string]string,
	client kubernetes.Interface, objects dynamic.Interface) *subject {
	t.Helper()
	s := &subject{store: proxy.NewStore(policy, "self")}
	sources, err := peers.New(peers.Config{
		Store: s.store, Client: client, Dynamic: objects, PeerTransport: to, Random: func() float64 { return 0.5 },
		LocalTransport: local,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.sources = sources
	for choice := range choices {
		h, err := proxy.New(proxy.Config{Store: s.store, Local: local.alone, Transport: to, Pick: func(n int) int { return choice % n }})
		if err != nil {
			t.Fatal(err)
		}
		s.handlers = append(s.handlers, h)
	}
	for id, address := range addresses {
		s.address(id, address)
	}
	go func() {
		if err := sources.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	return s
}

// address reports a peer's address to the store. Upstream instead reads it in etcd whenever it
// needs it.
func (s *subject) address(id, address string) {
	s.store.Observe(proxy.PeerAddress{ID: proxy.ServerID(id), Address: address})
}
