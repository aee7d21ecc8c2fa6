package proxy_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"

	"github.com/skewproof/skewproof/proxy"
)

// TestUpstreamTakesEmptyBodyForDocument: if an answer ended after its headers, upstream uses it as
// a document that lists nothing, and does not retry the fetch. If the body broke off later,
// upstream retries the fetch. The preset does the same. Without EmptyIsDocument, the fetch is
// retried in both cases.
func TestUpstreamTakesEmptyBodyForDocument(t *testing.T) {
	for name, c := range map[string]struct {
		fails   failure
		forgets bool // the implementation never learns what the peer serves
	}{
		"empty": {func(r *http.Request) *http.Response {
			return reply(r, http.StatusOK, "application/json", "")
		}, true},
		"broken off": {broken(func(int64) int64 { return 0 }), true},
		"cut short":  {broken(func(whole int64) int64 { return whole / 2 }), false},
		"one byte":   {broken(func(int64) int64 { return 1 }), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer func() { cancel(); synctest.Wait() }()
				w := &world{peers: map[string]*worldPeer{address(0): {id: "a", serves: documentOf(pool, false), down: [2]failure{c.fails, c.fails}}}}
				local, client, objects := newProcess(w.local), newClient(), newObjects()
				if _, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Create(ctx, identityLease("a", "1"), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				known := map[string]string{"a": address(0)}
				to := func() *way { return &way{world: w, fetches: map[string]int{}} }
				theirWay, ourWay := to(), to()
				without := proxy.Upstream137()
				without.Quirks.EmptyIsDocument = false
				theirs := startUpstream(ctx, t, "self", local, &transport.Config{WrapTransport: func(http.RoundTripper) http.RoundTripper { return theirWay }}, known, client, objects)
				ours := startSubject(ctx, t, proxy.Upstream137(), local, ourWay, known, client, objects)
				other := startSubject(ctx, t, without, local, to(), known, client, objects)
				theirs.wait()
				time.Sleep(time.Second)
				if p := other.store.Table().Peers(); len(p) != 1 || p[0].Failed[0] == "" || p[0].Failed[1] == "" {
					t.Errorf("without the switch it has learnt %+v, want both fetches failed", p)
				}
				w.change(func() { w.peers[address(0)].down = [2]failure{} })
				time.Sleep(time.Hour)

				want := "peer a"
				if c.forgets {
					want = "local" // the local server's answer, if no peer is known to serve the resource
				}
				for who, handler := range map[string]http.Handler{"upstream": theirs.handler, "its preset": ours.handlers[0]} {
					if x := plain(pool[0]).send(behindFilters(handler)); x.body != want {
						t.Errorf("%s answers %s, want %s", who, x, want)
					}
				}
				if x := plain(pool[0]).send(behindFilters(other.handlers[0])); x.body != "peer a" {
					t.Errorf("without the switch it answers %s, want the peer's answer", x)
				}
				for who, fetched := range map[string]map[string]int{"upstream": theirWay.fetched(), "its preset": ourWay.fetched()} {
					if len(fetched) != 2 {
						t.Errorf("%s fetched %v, want two documents", who, fetched)
					}
					for what, times := range fetched {
						if (times == 1) != c.forgets {
							t.Errorf("%s: %s: %d times; is a success, and not repeated: %t", who, what, times, c.forgets)
						}
					}
				}
			})
		})
	}
}
