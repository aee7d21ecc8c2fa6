package fabric

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
)

// apiserver is an HTTPS server with the protocols of a kube-apiserver that matter to the fabric:
// HTTP/2, a stream of events, and upgraded connections like those of exec and port-forward.
func apiserver(t *testing.T) (real netip.AddrPort, client *tls.Config) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/get", func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.Proto) })
	mux.HandleFunc("/watch", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintln(w, "ADDED")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/exec", func(w http.ResponseWriter, _ *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer func() { _ = c.Close() }()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(c, rw)
	})
	s := httptest.NewUnstartedServer(mux)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	transport := s.Client().Transport.(*http.Transport)
	return netip.MustParseAddrPort(s.Listener.Addr().String()), &tls.Config{RootCAs: transport.TLSClientConfig.RootCAs, ServerName: "example.com"}
}

// newPeers returns a fabric with two servers, of which only b listens.
func newPeers(t *testing.T) (*Fabric, *tls.Config) {
	t.Helper()
	real, config := apiserver(t)
	return startFabric(t, Config{
		Destinations: []Destination{{"b", netip.MustParseAddrPort("127.0.1.2:0"), real}},
		Sources:      []Source{{"a", netip.MustParseAddr("127.0.0.2")}, {"c", netip.MustParseAddr("127.0.0.4")}},
	}), config
}

// httpFrom returns an HTTP/2 client that dials from an address.
func httpFrom(t *testing.T, from string, f *Fabric, config *tls.Config) *http.Client {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{
		TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, f.Advertised("b").String())
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

func get(c *http.Client, path string) (string, error) {
	resp, err := c.Get("https://example.com" + path)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestHTTP2ThroughACut(t *testing.T) {
	f, config := newPeers(t)
	a, c := httpFrom(t, "127.0.0.2", f, config), httpFrom(t, "127.0.0.4", f, config)
	for _, client := range []*http.Client{a, c} {
		if proto, err := get(client, "/get"); err != nil || proto != "HTTP/2.0" {
			t.Fatalf("healthy: %q and %v", proto, err)
		}
	}
	watch, err := a.Get("https://example.com/watch")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Body.Close() }()
	events := bufio.NewReader(watch.Body)
	if line, err := events.ReadString('\n'); err != nil || line != "ADDED\n" {
		t.Fatalf("watch: %q and %v", line, err)
	}

	fault, err := f.Inject(t.Context(), fault.Fault{Kind: fault.Cut, From: "a", To: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if line, err := events.ReadString('\n'); err == nil {
		t.Errorf("the watch continues through the cut: %q", line)
	}
	if _, err := get(a, "/get"); err == nil {
		t.Error("a request was answered through the cut")
	}
	if _, err := get(c, "/get"); err != nil {
		t.Errorf("c→b, while a→b is cut: %v", err)
	}
	record, err := fault.Heal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if e := record.Evidence; e.Cut != 1 || e.Refused == 0 || e.BytesUp != 0 || e.BytesDown != 0 {
		t.Errorf("evidence %+v, want one connection cut, some refused and no bytes", e)
	}
	if _, err := get(a, "/get"); err != nil {
		t.Errorf("after the heal: %v", err)
	}
}

// upgrade opens a connection like exec does.
func upgrade(t *testing.T, f *Fabric, config *tls.Config) io.ReadWriter {
	t.Helper()
	c := tls.Client(dialFrom(t, "127.0.0.2", f.Advertised("b").String()), config)
	send(t, c, "GET /exec HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("upgrade: %s", resp.Status)
	}
	return struct {
		io.Reader
		io.Writer
	}{r, c}
}

func TestUpgradedConnections(t *testing.T) {
	f, config := newPeers(t)
	b := &testFabric{Fabric: f, t: t}
	for _, test := range []struct {
		fault fault.Fault
		want  history.Evidence
		ends  bool
	}{
		{fault.Fault{Kind: fault.Cut}, history.Evidence{Cut: 1}, true},
		{fault.Fault{Kind: fault.Reset, Direction: fault.Down}, history.Evidence{Cut: 1}, true},
		{fault.Fault{Kind: fault.Latency, Latency: time.Millisecond}, history.Evidence{Affected: 1}, false},
		{fault.Fault{Kind: fault.Slicer, Size: 3}, history.Evidence{Affected: 1}, false},
	} {
		t.Run(string(test.fault.Kind), func(t *testing.T) {
			test.fault.From, test.fault.To = "a", "b"
			shell := upgrade(t, f, config)
			b.talk(shell)
			a := b.inject(test.fault)
			if test.fault.Kind == fault.Reset {
				send(t, shell, "doomed")
			}
			if test.ends {
				wantReset(t, shell)
			} else {
				b.talk(shell)
			}
			wantEvidence(t, b.heal(a), test.want)
		})
	}
}

// A black hole is silent: the client must give up, not the link.
func TestHTTP2InABlackHole(t *testing.T) {
	f, config := newPeers(t)
	b := &testFabric{Fabric: f, t: t}
	client := httpFrom(t, "127.0.0.2", f, config)
	if _, err := get(client, "/get"); err != nil {
		t.Fatal(err)
	}
	sent := b.status("a", "b").BytesUp
	hole := b.inject(fault.Fault{Kind: fault.Timeout, From: "a", To: "b", Direction: fault.Down})
	answered := make(chan error, 1)
	go func() {
		_, err := get(client, "/get")
		answered <- err
	}()
	eventually(t, "the request has come through and its answer has not", func() bool {
		l, err := f.link("a", "b")
		if err != nil {
			t.Fatal(err)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		for c := range l.open {
			h := c.pipes[stream.Downstream]
			if l.bytes[stream.Upstream].Load() > sent && h.in.Load() > h.out.Load() {
				return true
			}
		}
		return false
	})
	select {
	case err := <-answered:
		t.Fatalf("the request ended with %v", err)
	default:
	}
	record := b.heal(hole)
	// net/http may have retried on a new connection after the old one was reset. In both cases the
	// request is over now.
	<-answered
	wantEvidence(t, record, history.Evidence{Affected: 1, Cut: 1})
	if _, err := get(client, "/get"); err != nil {
		t.Errorf("after the heal: %v", err)
	}
}
