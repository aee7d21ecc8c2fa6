package sidecar

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/peers"
)

const novelties = "/apis/new.example/v2/novelties" // only b serves it

// addIdentity gives a server an identity lease in the API of a.
func (a *apiserver) addIdentity(server string) {
	now, holder := metav1.NowMicro(), server+"_1"
	a.set(func() {
		a.leases[server] = &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: peers.Namespace, Name: server, Labels: map[string]string{peers.IdentityLabel: peers.IdentityValue}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now},
		}
	})
}

// beside is a sidecar of server a in a cluster in which server b has none.
func beside(t *testing.T, adjust func(*Options, *apiserver)) (*apiserver, *running) {
	w := newWorld(t)
	a := newAPIServer(t, "a", w.serving, w.frontCA, everywhere, onlyA)
	b := newAPIServer(t, "b", w.serving, w.frontCA, everywhere, onlyB)
	a.addIdentity("apiserver-a")
	a.addIdentity("apiserver-b")
	o := w.options("a", a)
	adjust(o, b)
	r := w.run(o)
	r.awaitReady()
	return b, r
}

func addressOf(a *apiserver) string { return strings.TrimPrefix(a.server.URL, "https://") }

// A server without a sidecar is asked as one with a sidecar is, and what nobody serves is 404.
func TestServerWithoutSidecarIsAsked(t *testing.T) {
	b, r := beside(t, func(o *Options, b *apiserver) {
		o.DirectPeers = []string{"apiserver-a=192.0.2.1:6443", "apiserver-b=" + addressOf(b)}
	})
	await(t, "it is known what b serves", func() bool { return r.knows("apiserver-b") })
	got := r.get(r.user("alice", "dev"), novelties)
	s, _ := b.last(novelties)
	if got.code != http.StatusOK || s.user != "alice" || s.header.Get(proxy.HopHeader) == "" || got.header.Get("X-Served-By") != "b" {
		t.Errorf("what only b serves: %d, at b as %q with %v; want 200, as alice, marked as a hop", got.code, s.user, s.header)
	}
	const nobodys = "/apis/nobody.example/v1/nothings"
	if got := r.get(r.user("alice"), nobodys); got.code != http.StatusNotFound {
		t.Errorf("what nobody serves: %d %s, want 404", got.code, got.body)
	}
	var report PeersReport
	if err := json.Unmarshal([]byte(r.onAdmin(debugPeersPath).body), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Peers) != 1 || !report.Peers[0].Direct || report.Peers[0].Address != addressOf(b) {
		t.Errorf("the report has %+v: want b alone, direct", report.Peers)
	}
	if text := r.onAdmin(debugPeersPath + "?format=text").body; !strings.Contains(text, "PROXY") || !strings.Contains(text, addressOf(b)+"  no ") {
		t.Errorf("the report as text does not show that b has no proxy:\n%s", text)
	}
	if metrics := r.onAdmin("/metrics").body; !strings.Contains(metrics, `skewproof_proxy_peers{reached="direct"} 1`) {
		t.Error("the metric does not count b")
	}
}

// Nobody knows what it serves if its address is not known, so that nothing is 404.
func TestServerWithoutSidecarThatIsNotFound(t *testing.T) {
	_, r := beside(t, func(*Options, *apiserver) {})
	got := r.get(r.user("alice"), "/apis/nobody.example/v1/nothings")
	if got.code != http.StatusServiceUnavailable {
		t.Errorf("what nobody serves: %d %s, want 503", got.code, got.body)
	}
	if metrics := r.onAdmin("/metrics").body; !strings.Contains(metrics, `skewproof_proxy_peers{reached="unknown"} 1`) {
		t.Error("the metric does not count b")
	}
}

// An address must belong to a server with a certificate of the peers' authority.
func TestServerWithoutSidecarIsVerified(t *testing.T) {
	b, r := beside(t, func(o *Options, b *apiserver) {
		stranger := newAuthority(t, "stranger")
		o.PeerCAFile = writeFile(t, t.TempDir(), "peer-ca.crt", stranger.pem)
		o.DirectPeers = []string{"apiserver-b=" + addressOf(b)}
	})
	if got := r.get(r.user("alice"), novelties); got.code != http.StatusServiceUnavailable {
		t.Errorf("%d %s, want 503", got.code, got.body)
	}
	if s, arrived := b.last(novelties); arrived {
		t.Errorf("b was sent %+v", s)
	}
}

func TestWrongDirectPeers(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]struct {
		direct, peers []string
		want          string
	}{
		"no address":       {[]string{"apiserver-b"}, nil, "--direct-peer: read peer \"apiserver-b\": want id=host:port"},
		"one twice":        {[]string{"apiserver-b=h:1", "apiserver-b=h:2"}, nil, "--direct-peer: read peer"},
		"beside --peer":    {[]string{"apiserver-b=h:1"}, []string{"apiserver-c=h:2"}, "give one of the two"},
		"its own is right": {[]string{"apiserver-a=h:1"}, nil, ""},
	} {
		o := w.options("a", nil)
		o.DirectPeers, o.Peers = test.direct, test.peers
		_, err := o.complete(time.Now())
		if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
