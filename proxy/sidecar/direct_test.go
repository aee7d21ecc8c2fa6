package sidecar

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/peers"
)

const novelties = "/apis/new.example/v2/novelties" // only b serves it

// addIdentity gives a server an identity lease in the API of a, with its host name.
func (a *apiserver) addIdentity(server, host string) {
	now, holder := metav1.NowMicro(), server+"_1"
	labels := map[string]string{peers.IdentityLabel: peers.IdentityValue, corev1.LabelHostname: host}
	a.set(func() {
		a.leases[server] = &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: peers.Namespace, Name: server, Labels: labels},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now},
		}
	})
}

// beside is a sidecar of server a. In the same cluster, server b has no sidecar. The certificate of
// b has its host name, host-b.
func beside(t *testing.T, adjust func(o *Options, a, b *apiserver)) (*apiserver, *running) {
	w := newWorld(t)
	a := newAPIServer(t, "a", w.serving, w.frontCA, everywhere, onlyA)
	ofB := w.ca.issue(subject{name: "kube-apiserver", dns: []string{peerServerName, "localhost", "host-b"}})
	b := newAPIServer(t, "b", ofB, w.frontCA, everywhere, onlyB)
	a.addIdentity("apiserver-a", "host-a")
	a.addIdentity("apiserver-b", "host-b")
	o := w.options("a", a)
	adjust(o, a, b)
	r := w.run(o)
	r.awaitReady()
	return b, r
}

// publish puts the address of b into the Service of all servers, with the IP address 127.0.0.1.
func (a *apiserver) publish(b *apiserver) {
	port := int32(b.server.Listener.Addr().(*net.TCPAddr).Port)
	a.set(func() {
		a.endpoints = &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"127.0.0.1"}}}, Ports: []discoveryv1.EndpointPort{{Port: &port}},
		}
	})
}

func addressOf(a *apiserver) string { return strings.TrimPrefix(a.server.URL, "https://") }

// A server without a sidecar gets the same requests as one with a sidecar. A request for a resource
// that no server serves is answered with 404.
func TestServerWithoutSidecarIsAsked(t *testing.T) {
	t.Parallel()
	for name, adjust := range map[string]func(o *Options, a, b *apiserver){
		"at the address that a flag gives": func(o *Options, _, b *apiserver) {
			o.DirectPeers = []string{"apiserver-a=192.0.2.1:6443", "apiserver-b=" + addressOf(b)}
		},
		"where it is found": func(_ *Options, a, b *apiserver) { a.publish(b) },
	} {
		t.Run(name, func(t *testing.T) {
			b, r := beside(t, adjust)
			isAsked(t, b, r)
		})
	}
}

func isAsked(t *testing.T, b *apiserver, r *running) {
	await(t, "it is known what b serves", func() bool { return r.knows("apiserver-b") })
	got := r.get(r.user("alice", "dev"), novelties)
	s, _ := b.last(novelties)
	if got.code != http.StatusOK || s.user != "alice" || s.header.Get(proxy.HopHeader) == "" || got.header.Get("X-Served-By") != "b" {
		t.Errorf("a resource that only b serves: %d, at b as %q with %v; want 200, as alice, marked as a hop", got.code, s.user, s.header)
	}
	const nobodys = "/apis/nobody.example/v1/nothings"
	if got := r.get(r.user("alice"), nobodys); got.code != http.StatusNotFound {
		t.Errorf("a resource that no server serves: %d %s, want 404", got.code, got.body)
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

// If the address of the server is unknown, its resources are unknown too. So no request is answered
// with 404.
func TestServerWithoutSidecarThatIsNotFound(t *testing.T) {
	t.Parallel()
	_, r := beside(t, func(o *Options, a, b *apiserver) {
		a.publish(b)
		o.FindDirectPeers = false
	})
	got := r.get(r.user("alice"), "/apis/nobody.example/v1/nothings")
	if got.code != http.StatusServiceUnavailable {
		t.Errorf("a resource that no server serves: %d %s, want 503", got.code, got.body)
	}
	if metrics := r.onAdmin("/metrics").body; !strings.Contains(metrics, `skewproof_proxy_peers{reached="unknown"} 1`) {
		t.Error("the metric does not count b")
	}
}

// An address must belong to a server with a certificate of the peers' authority.
func TestServerWithoutSidecarIsVerified(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"at the address that a flag gives": true, "where it could be found": false} {
		t.Run(name, func(t *testing.T) {
			b, r := beside(t, func(o *Options, a, b *apiserver) {
				a.publish(b)
				stranger := newAuthority(t, "stranger")
				o.PeerCAFile = writeFile(t, t.TempDir(), "peer-ca.crt", stranger.pem)
				if known {
					o.DirectPeers = []string{"apiserver-b=" + addressOf(b)}
				}
			})
			if got := r.get(r.user("alice"), novelties); got.code != http.StatusServiceUnavailable {
				t.Errorf("%d %s, want 503", got.code, got.body)
			}
			if s, arrived := b.last(novelties); arrived {
				t.Errorf("b was sent %+v", s)
			}
			if _, err := r.options.credentialsOf(t).identify(t.Context(), addressOf(b)); err == nil {
				t.Error("b is identified by a certificate of an authority that is not that of peers")
			}
		})
	}
}

// credentialsOf reads the files that the options name.
func (o *Options) credentialsOf(t *testing.T) *credentials {
	t.Helper()
	c, err := o.complete(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return c.credentials
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
		"like a release":   {[]string{"apiserver-b=h:1"}, nil, "--policy upstream-1.37"},
	} {
		o := w.options("a", nil)
		if name == "like a release" {
			o.Policy = "upstream-1.37"
		}
		o.DirectPeers, o.Peers = test.direct, test.peers
		_, err := o.complete(time.Now())
		if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
