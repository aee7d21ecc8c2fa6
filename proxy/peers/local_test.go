package peers

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// besideLocal has the sources that ask a local server what it serves, on synctest's clock.
type besideLocal struct {
	t       *testing.T
	store   *proxy.Store
	sources *Sources
	server  *server
}

// withLocal runs a test beside a local server. If failing is set, it answers for /apis at first.
func withLocal(t *testing.T, policy proxy.Policy, failing http.HandlerFunc, test func(*testing.T, *besideLocal)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &besideLocal{t: t, store: proxy.NewStore(policy, "self"), server: newServer(t, "v1.36.3", "apps/v1 deployments")}
		l.server.failing["/apis"] = failing
		sources, err := New(Config{Store: l.store, PeerTransport: roundTrip(nil), LocalTransport: &network{servers: map[string]http.Handler{localServer.Host: l.server}}})
		if err != nil {
			t.Fatal(err)
		}
		l.sources = sources
		defer start(t, sources.Run)()
		synctest.Wait()
		test(t, l)
	})
}

// serves reports whether the table believes that the local server serves a resource.
func (l *besideLocal) serves(gv, resource string) bool {
	synctest.Wait()
	return decide(l.store, gv, resource).Reason == proxy.ReasonLocal
}

func TestLocal(t *testing.T) {
	withLocal(t, proxy.Reference(), nil, func(t *testing.T, l *besideLocal) {
		if !l.store.Table().LocalKnown() || !l.serves("apps/v1", "deployments") || !l.serves("v1", "pods") {
			t.Fatal("the local server was not asked at once")
		}
		if !l.sources.HasSynced() {
			t.Fatal("not synced")
		}
		for _, r := range l.server.requests {
			if len(r.Header.Values("X-Kubernetes-Peer-Proxied")) > 0 || r.Header.Get("X-Remote-User") != "system:apiserver" {
				t.Fatalf("asked with the headers %v", r.Header)
			}
		}

		// Unchanged documents are confirmed, and no subscriber is woken.
		changed, stop := l.store.Subscribe()
		defer stop()
		l.server.taken()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := l.server.taken(); len(got) != 20 || got[0] != 304 {
			t.Errorf("in ten seconds: %v, want 304 twice a second", got)
		}
		select {
		case <-changed:
			t.Error("an unchanged local server is an event")
		default:
		}

		// The served resources change without a restart: a custom resource is added.
		l.server.set(func() { l.server.apis = document("apps/v1 deployments", "example.com/v1 widgets") })
		time.Sleep(time.Second)
		if !l.serves("example.com/v1", "widgets") {
			t.Error("a new resource was not noticed")
		}

		// If the server is slow or answers with an error, it is the same process and serves the
		// same resources.
		l.server.set(func() { l.server.failing["/apis"] = respond(500) })
		time.Sleep(time.Minute)
		if !l.serves("apps/v1", "deployments") {
			t.Error("forgotten because of an error")
		}
		l.server.set(func() { l.server.failing["/apis"] = hang })
		time.Sleep(time.Minute)
		if !l.serves("apps/v1", "deployments") {
			t.Error("forgotten because of a timeout")
		}
		l.server.set(func() { clear(l.server.failing) })
	})
}

// Upstream routes by the answer that it asks for every 30 minutes. An answer on demand changes
// discovery at once, but routing only after the 30 minutes.
func TestLocalUpstream(t *testing.T) {
	withLocal(t, proxy.Upstream137(), nil, func(t *testing.T, l *besideLocal) {
		l.server.set(func() { l.server.apis = document("apps/v1 deployments", "example.com/v1 widgets") })
		time.Sleep(29 * time.Minute)
		if l.serves("example.com/v1", "widgets") {
			t.Fatal("asked before its time")
		}
		time.Sleep(2 * time.Minute)
		if !l.serves("example.com/v1", "widgets") {
			t.Fatal("not asked after 30 minutes")
		}
		l.server.set(func() { l.server.apis = document("apps/v1 daemonsets") })
		l.sources.RefreshLocal()
		synctest.Wait()
		shown := slices.ContainsFunc(l.store.Table().Sources(proxy.RootGroups), func(s discovery.Source) bool {
			return s.Local && discovery.NewIndex(s.Groups).Resource("apps", "v1", "daemonsets", "")
		})
		if !shown {
			t.Fatal("not asked on demand")
		}
		if l.serves("apps/v1", "daemonsets") {
			t.Fatal("routed by it before its time")
		}
		time.Sleep(31 * time.Minute)
		if !l.serves("apps/v1", "daemonsets") {
			t.Fatal("not routed by it after 30 minutes")
		}
	})
}

// While a local server answers with an error, it is asked every second. The sources are synced
// after its first document.
func TestLocalNotReadyYet(t *testing.T) {
	withLocal(t, proxy.Reference(), respond(503), func(t *testing.T, l *besideLocal) {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if l.sources.HasSynced() {
			t.Error("synced without a local server")
		}
		l.server.set(func() { clear(l.server.failing) })
		time.Sleep(time.Second)
		synctest.Wait()
		if !l.sources.HasSynced() || !l.store.Table().LocalKnown() {
			t.Error("not synced though the local server has answered")
		}
	})
}
