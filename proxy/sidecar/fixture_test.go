package sidecar

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	everywhere = schema.GroupVersionResource{Group: "both.example", Version: "v1", Resource: "commons"}
	onlyA      = schema.GroupVersionResource{Group: "old.example", Version: "v1", Resource: "relics"}
	onlyB      = schema.GroupVersionResource{Group: "new.example", Version: "v2", Resource: "novelties"}
)

// world has the things that sidecars share: authorities, a directory for files, and clients.
type world struct {
	t                testing.TB
	dir              string
	ca, frontCA      *authority
	serving, proxies issued
	transports       []*http.Transport // of clients
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, dir: t.TempDir(), ca: newAuthority(t, "cluster"), frontCA: newAuthority(t, "front-proxy")}
	w.serving = w.ca.issue(subject{name: "kube-apiserver", dns: []string{peerServerName, "localhost"}})
	w.proxies = w.frontCA.issue(subject{name: "front-proxy-client"})
	return w
}

// options returns valid options for a sidecar of that server. The certificate files belong to this
// sidecar only.
func (w *world) options(name string, upstream *apiserver) *Options {
	o := NewOptions()
	o.ServerID = "apiserver-" + name
	o.TLSCertFile, o.TLSPrivateKeyFile = w.serving.write(w.t, w.dir, "serving-"+name)
	o.ProxyClientCert, o.ProxyClientKey = w.proxies.write(w.t, w.dir, "front-proxy-client-"+name)
	ca := writeFile(w.t, w.dir, "ca-"+name+".crt", w.ca.pem)
	o.ClientCAFile, o.PeerCAFile, o.UpstreamCAFile = ca, ca, ca
	o.RequestHeaderCAFile = writeFile(w.t, w.dir, "front-proxy-ca-"+name+".crt", w.frontCA.pem)
	o.RequestHeaderNames = []string{"front-proxy-client"}
	if upstream != nil {
		o.Upstream = upstream.server.URL
	}
	o.AccessLog = w.dir + "/access-" + name + ".jsonl"
	o.PeerAdvertiseIP, o.PeerAdvertisePort = "127.0.0.1", "1" // this address is not dialled, because peers are given by address
	o.CertificateRefreshTime = 20 * time.Millisecond
	o.Logger = slog.New(slog.NewTextHandler(w.t.Output(), nil))
	return o
}

// running is a running sidecar.
type running struct {
	*world
	options      *Options
	front, admin string // addresses
	stop         context.CancelFunc
	ended        chan error // the error that Run returned
}

// run starts a sidecar on its own listeners. The sidecar stops at the end of the test.
func (w *world) run(o *Options) *running {
	w.t.Helper()
	if o.Listener == nil {
		o.Listener = listen(w.t)
	}
	o.AdminListener = listen(w.t)
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{world: w, options: o, stop: cancel, ended: make(chan error, 1)}
	started := make(chan struct{})
	o.Started = func(front, admin net.Addr) {
		r.front, r.admin = front.String(), admin.String()
		close(started)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.ended <- Run(ctx, o)
	}()
	w.t.Cleanup(func() {
		cancel()
		<-done
	})
	select {
	case <-started:
	case <-done:
		w.t.Fatalf("the sidecar did not start: %v", <-r.ended)
	}
	return r
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// client returns a client of front doors; cert may be nil.
func (w *world) client(cert *issued, http2 bool) *http.Client {
	config := &tls.Config{RootCAs: pool(w.ca), ServerName: peerServerName, MinVersion: tls.VersionTLS12}
	if cert != nil {
		// The client sends its certificate even if the server does not name its authority, like a
		// hostile client.
		pair := cert.tls(w.t)
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	transport := &http.Transport{TLSClientConfig: config, Protocols: protocols}
	w.t.Cleanup(transport.CloseIdleConnections)
	w.transports = append(w.transports, transport)
	return &http.Client{Transport: transport}
}

// dial connects to a server of this world over HTTP/2, and sends the preface. The connection is
// closed at the end of the test, unless the test closes it before.
func (w *world) dial(address string) *tls.Conn {
	w.t.Helper()
	conn := w.dialBy(address, "h2")
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		w.t.Fatal(err)
	}
	return conn
}

// dialBy connects to a server of this world with a protocol.
func (w *world) dialBy(address, protocol string) *tls.Conn {
	w.t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{
		RootCAs: pool(w.ca), ServerName: peerServerName, NextProtos: []string{protocol}, MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// user returns a client with a certificate for that name.
func (w *world) user(name string, groups ...string) *http.Client {
	cert := w.ca.issue(subject{name: name, groups: groups})
	return w.client(&cert, true)
}

// answer is an answer with its whole body.
type answer struct {
	code   int
	header http.Header
	body   string
}

func (a answer) status(t testing.TB) metav1.Status {
	t.Helper()
	var s metav1.Status
	if err := json.Unmarshal([]byte(a.body), &s); err != nil || s.Kind != "Status" {
		t.Fatalf("the answer (%d) is not a Status: %s", a.code, a.body)
	}
	return s
}

// get sends a GET with headers, given as name and value in turn.
func (r *running) get(c *http.Client, path string, headers ...string) answer {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "https://"+r.front+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header[headers[i]] = append(request.Header[headers[i]], headers[i+1])
	}
	return do(r.t, c, request)
}

func do(t testing.TB, c *http.Client, request *http.Request) answer {
	t.Helper()
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

// onAdmin sends a GET to the admin listener.
func (r *running) onAdmin(path string) answer {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+r.admin+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return do(r.t, http.DefaultClient, request)
}

// records returns the access records of a path.
func (r *running) records(path string) []AccessRecord {
	r.t.Helper()
	content, err := os.ReadFile(r.options.AccessLog)
	if err != nil {
		r.t.Fatal(err)
	}
	var found []AccessRecord
	for line := range strings.Lines(string(content)) {
		var record AccessRecord
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			r.t.Fatalf("a line of the access log is not a record: %v: %s", err, line)
		}
		if record.Path == path {
			found = append(found, record)
		}
	}
	return found
}

// patience is much longer than anything takes that a test waits for. With the race detector,
// hundreds of TLS connections at once took 20 s on two processors.
const patience = time.Minute

// await waits until a condition holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("waited for %s: %s", patience, what)
		case <-tick.C:
		}
	}
}

func (r *running) awaitReady() {
	r.t.Helper()
	await(r.t, "the sidecar is ready", func() bool { return r.onAdmin("/readyz").code == http.StatusOK })
}

// pair is two servers of different versions, each with a sidecar that knows the other.
type pair struct {
	*world
	a, b     *apiserver
	atA, atB *running
	oA, oB   *Options
}

func newPair(t testing.TB, adjust ...func(*Options)) *pair {
	w := newWorld(t)
	return w.pair(newAPIServer(t, "a", w.serving, w.frontCA, everywhere, onlyA), newAPIServer(t, "b", w.serving, w.frontCA, everywhere, onlyB), adjust...)
}

// pair starts the sidecars of two servers.
func (w *world) pair(a, b *apiserver, adjust ...func(*Options)) *pair {
	t := w.t
	p := &pair{world: w, a: a, b: b}
	p.oA, p.oB = w.options("a", p.a), w.options("b", p.b)
	for _, f := range adjust {
		f(p.oA)
		f(p.oB)
	}
	p.oA.Listener, p.oB.Listener = listen(t), listen(t)
	p.oA.Peers = []string{"apiserver-b=" + p.oB.Listener.Addr().String()}
	p.oB.Peers = []string{"apiserver-a=" + p.oA.Listener.Addr().String()}
	p.atA, p.atB = w.run(p.oA), w.run(p.oB)
	for _, r := range []*running{p.atA, p.atB} {
		r.awaitReady()
	}
	// The first fetch fails if the peer has not started yet; it is repeated.
	await(t, "each knows what the other serves", func() bool {
		return p.atA.knows("apiserver-b") && p.atB.knows("apiserver-a")
	})
	return p
}

func (r *running) knows(peer string) bool {
	var report PeersReport
	if err := json.Unmarshal([]byte(r.onAdmin(debugPeersPath).body), &report); err != nil {
		return false
	}
	for _, p := range report.Peers {
		if p.ID != peer {
			continue
		}
		for _, d := range p.Documents {
			if d.Learned == nil {
				return false
			}
		}
		return true
	}
	return false
}

// report returns what the sidecar knows about its peers.
func (r *running) report(t testing.TB) (report PeersReport) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.onAdmin(debugPeersPath).body), &report); err != nil {
		t.Fatal(err)
	}
	return report
}
