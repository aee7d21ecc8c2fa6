package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	upstreamproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/authentication/user"
	proxyutil "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/client-go/transport"

	"github.com/skewproof/skewproof/proxy/internal/wire"
)

const execPath = gadgetsPath + "/x/exec"

// execs makes the events after which peers serve gadgets and their exec.
func execs(address string) []Event {
	exec := gadget
	exec.Subresource = "exec"
	return []Event{LocalFetched{At: epoch}, PeerAppeared{ID: "a"}, PeerAddress{ID: "a", Address: address}, Fetched{At: epoch, Results: []FetchResult{
		{ID: "a", Roots: [roots]RootResult{{Groups: groups(pods)}, {Groups: groups(gadget, exec)}}},
	}}, Synced{}}
}

// tunnelled puts the handler in front of a peer that serves upgrades.
func tunnelled(t *testing.T, peer http.Handler) (*shell, *httptest.Server) {
	t.Helper()
	far := peerServer(t, true, peer) // the peer would speak HTTP/2 if a client asked for it
	s := newShell(t, Reference(), execs(address(far)), byProtocol{transportTo(t, far, true), transportTo(t, far, false)})
	near, _ := front(t, s, true)
	return s, near
}

// switching is a peer that switches to a protocol and then passes the connection to serve.
func switching(t *testing.T, protocol string, serve func(net.Conn, *bufio.Reader)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Errorf("the peer cannot hijack: %v", err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: true\r\nX-Stream-Protocol-Version: v4\r\nX-Was-For: %s\r\n\r\n",
			protocol, HopHeader, r.Header.Get("X-Remote-User"))
		serve(conn, buffered.Reader)
	})
}

// trusting is the TLS configuration of a client that trusts only this server's certificate, which
// all servers of these tests have.
func trusting(server *httptest.Server) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return &tls.Config{RootCAs: roots, ServerName: "example.com"}
}

// dial opens a connection to the front and sends the lines of a request.
func dial(t *testing.T, near *httptest.Server, lines string) (*tls.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := tls.Dial("tcp", address(near), trusting(near))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, lines); err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

func spdy(method string) string {
	return method + " " + execPath + "?command=sh HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Remote-User: root\r\nContent-Length: 0\r\n\r\n"
}

func TestUpgradeHalfClose(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		t.Run(method, func(t *testing.T) {
			_, near := tunnelled(t, switching(t, "SPDY/3.1", func(conn net.Conn, r *bufio.Reader) {
				io.WriteString(conn, "welcome\n")
				all, err := io.ReadAll(r) // ends when the client closes its half
				fmt.Fprintf(conn, "got %q, %v\n", all, err)
			}))
			conn, r := dial(t, near, spdy(method)+"early ")
			answer, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if answer.StatusCode != 101 || answer.Header.Get("Upgrade") != "SPDY/3.1" || answer.Header.Get("X-Stream-Protocol-Version") != "v4" {
				t.Errorf("%d %v, want the peer's 101", answer.StatusCode, answer.Header)
			}
			if got := answer.Header.Get("X-Was-For"); got != "alice" {
				t.Errorf("the peer was asked for %q, want alice", got)
			}
			if said := mentionsHop(answer.Header); said != "" {
				t.Errorf("the client sees %s", said)
			}
			if got, err := r.ReadString('\n'); err != nil || got != "welcome\n" {
				t.Fatalf("read %q, %v", got, err)
			}
			io.WriteString(conn, "and late")
			if err := conn.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(r)
			if want := "got \"early and late\", <nil>\n"; err != nil || string(rest) != want {
				t.Errorf("after half of the connection was closed: read %q, %v, want %q", rest, err, want)
			}
		})
	}
}

// Released servers pass on the user with every request except an upgrade. The test shows this with
// the handler and the round tripper of the real upstream code, connected as peerproxy connects
// them.
func TestUpgradesWithoutIdentity(t *testing.T) {
	alice := &user.DefaultInfo{Name: "alice", Groups: []string{"dev"}}
	released := func(far *httptest.Server) http.Handler {
		to := transportTo(t, far, false)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			location := &url.URL{Scheme: "https", Host: address(far), Path: r.URL.Path, RawQuery: r.URL.RawQuery}
			request, cancel := proxyutil.NewRequestForProxy(location, r)
			defer cancel()
			asAlice := transport.NewAuthProxyRoundTripper(alice.Name, alice.UID, alice.Groups, alice.Extra, to)
			upstreamproxy.NewUpgradeAwareHandler(location, asAlice, true, false, nil).ServeHTTP(w, request)
		})
	}
	preset := func(p Policy) func(far *httptest.Server) http.Handler {
		return func(far *httptest.Server) http.Handler {
			return newShell(t, p, execs(address(far)), byProtocol{transportTo(t, far, true), transportTo(t, far, false)}).by(alice)
		}
	}
	for name, c := range map[string]struct {
		handler func(far *httptest.Server) http.Handler
		want    string
	}{
		"released":  {released, ""},
		"preset":    {preset(Upstream137()), ""},
		"reference": {preset(Reference()), "alice"},
	} {
		t.Run(name, func(t *testing.T) {
			far := peerServer(t, true, switching(t, "SPDY/3.1", func(net.Conn, *bufio.Reader) {}))
			near := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Del("X-Remote-User") // as the authentication filter does
				c.handler(far).ServeHTTP(w, r)
			}))
			t.Cleanup(near.Close)
			_, answered := dial(t, near, spdy("GET"))
			answer, err := http.ReadResponse(answered, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := answer.Header.Get("X-Was-For"); answer.StatusCode != http.StatusSwitchingProtocols || got != c.want {
				t.Errorf("%d, and the peer was asked for %q, want 101 and %q", answer.StatusCode, got, c.want)
			}
		})
	}
}

func TestWebSocket(t *testing.T) {
	var offered, authorization string
	_, near := tunnelled(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		offered, authorization = strings.Join(r.Header["Sec-Websocket-Protocol"], ","), r.Header.Get("Authorization")
		upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		for {
			kind, message, err := conn.ReadMessage()
			if err != nil {
				return
			}
			if conn.WriteMessage(kind, append([]byte("echo "), message...)) != nil {
				return
			}
		}
	}))
	dialer := websocket.Dialer{
		TLSClientConfig: trusting(near),
		Subprotocols:    []string{wire.BearerProtocol + "c2VjcmV0", "v5.channel.k8s.io"},
	}
	conn, answer, err := dialer.Dial("wss://"+address(near)+execPath, http.Header{"Authorization": {"Bearer secret"}})
	if err != nil {
		t.Fatalf("%v %v", err, answer)
	}
	defer conn.Close()
	if conn.Subprotocol() != "v5.channel.k8s.io" || offered != "v5.channel.k8s.io" || authorization != "" {
		t.Errorf("agreed on %q; the peer was offered %q and got Authorization %q", conn.Subprotocol(), offered, authorization)
	}
	for _, message := range []string{"one", strings.Repeat("long ", 50000)} {
		if err := conn.WriteMessage(websocket.BinaryMessage, []byte(message)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := conn.ReadMessage(); err != nil || string(got) != "echo "+message {
			t.Fatalf("read %d bytes, %v", len(got), err)
		}
	}
}

func TestUpgradeEndsWithEitherSide(t *testing.T) {
	t.Run("the peer dies", func(t *testing.T) {
		_, near := tunnelled(t, switching(t, "SPDY/3.1", func(conn net.Conn, _ *bufio.Reader) {
			conn.(*tls.Conn).NetConn().(*net.TCPConn).SetLinger(0) // makes Close send a reset
			conn.(*tls.Conn).NetConn().Close()
		}))
		_, r := dial(t, near, spdy("POST"))
		if answer, err := http.ReadResponse(r, nil); err != nil || answer.StatusCode != 101 {
			t.Fatalf("%v %v", answer, err)
		}
		io.ReadAll(r) // it must return, with or without an error
	})
	t.Run("the client dies", func(t *testing.T) {
		ended := make(chan struct{})
		_, near := tunnelled(t, switching(t, "SPDY/3.1", func(_ net.Conn, r *bufio.Reader) {
			io.ReadAll(r)
			close(ended)
		}))
		conn, r := dial(t, near, spdy("POST"))
		if answer, err := http.ReadResponse(r, nil); err != nil || answer.StatusCode != 101 {
			t.Fatalf("%v %v", answer, err)
		}
		conn.NetConn().(*net.TCPConn).SetLinger(0)
		conn.NetConn().Close()
		<-ended
	})
	t.Run("the server drains", func(t *testing.T) {
		ended := make(chan struct{})
		far := peerServer(t, false, switching(t, "SPDY/3.1", func(_ net.Conn, r *bufio.Reader) {
			io.ReadAll(r)
			close(ended)
		}))
		s := newShell(t, Reference(), execs(address(far)), transportTo(t, far, false))
		ctx, cancel := context.WithCancel(context.Background())
		near := httptest.NewUnstartedServer(s)
		near.Config.BaseContext = func(net.Listener) context.Context { return ctx }
		near.StartTLS()
		t.Cleanup(near.Close)
		_, r := dial(t, near, spdy("POST"))
		if answer, err := http.ReadResponse(r, nil); err != nil || answer.StatusCode != 101 {
			t.Fatalf("%v %v", answer, err)
		}
		cancel()
		<-ended
		io.ReadAll(r)
	})
}

func TestBadUpgrades(t *testing.T) {
	refuses := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, "Connection %q Upgrade %q", r.Header.Get("Connection"), r.Header.Get("Upgrade"))
	})
	surprises := switching(t, "h2c", func(net.Conn, *bufio.Reader) {})
	for name, c := range map[string]struct {
		peer   http.Handler
		header string
		code   int
		body   string
	}{
		"Connection without Upgrade": {refuses, "Connection: Upgrade\r\n", 400, `Connection "" Upgrade ""`},
		"Upgrade without Connection": {refuses, "Upgrade: websocket\r\n", 400, `Connection "" Upgrade ""`},
		"the peer refuses":           {refuses, "Connection: keep-alive, UPGRADE\r\nUpgrade: SPDY/3.1\r\n", 400, `Connection "Upgrade" Upgrade "SPDY/3.1"`},
		"another protocol":           {surprises, "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n", 503, "not asked for"},
		"another HTTP":               {refuses, "Connection: Upgrade\r\nUpgrade: h2c, HTTP/2.0\r\n", 400, `Connection "" Upgrade ""`},
		"one of several":             {refuses, "Connection: Upgrade\r\nUpgrade: a/1, h2c\r\nUpgrade: b\r\n", 400, `Connection "Upgrade" Upgrade "a/1, b"`},
		"not asked for at all":       {surprises, "", 503, "not asked for"},
	} {
		t.Run(name, func(t *testing.T) {
			_, near := tunnelled(t, c.peer)
			if name == "not asked for at all" { // HTTP/1.1 on the whole path: HTTP/2 has no 101
				far := peerServer(t, false, c.peer)
				s := newShell(t, Reference(), execs(address(far)), transportTo(t, far, false))
				near, _ = front(t, s, false)
			}
			_, r := dial(t, near, "POST "+execPath+" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"+c.header+"\r\n")
			answer, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(answer.Body)
			if answer.StatusCode != c.code || !strings.Contains(string(body), c.body) {
				t.Errorf("%d %s, want %d %s", answer.StatusCode, body, c.code, c.body)
			}
		})
	}
	t.Run("HTTP/2 ignores Upgrade headers", func(t *testing.T) {
		var sent http.Header
		s := newShell(t, Reference(), execs("a.test:1"), transportFunc(func(r *http.Request) (*http.Response, error) {
			sent = r.Header
			return says(400, "you must upgrade"), nil
		}))
		r := httptest.NewRequest("POST", execPath, nil)
		r.ProtoMajor, r.ProtoMinor = 2, 0
		r.Header["Connection"], r.Header["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
		if got := s.serve(r); got.Code != 400 || sent["Upgrade"] != nil || sent["Connection"] != nil {
			t.Errorf("%d, sent %v; want the peer's 400 to an ordinary request", got.Code, sent)
		}
	})
	t.Run("the client's connection cannot be hijacked", func(t *testing.T) {
		s := newShell(t, Reference(), execs("a.test:1"), transportFunc(func(r *http.Request) (*http.Response, error) {
			near, far := net.Pipe()
			t.Cleanup(func() { far.Close() })
			answer := says(101, "", "Connection", "Upgrade", "Upgrade", "SPDY/3.1")
			answer.Body = near
			return answer, nil
		}))
		if got := s.ask("POST", execPath, "", "Connection", "Upgrade", "Upgrade", "SPDY/3.1"); got.Code != 500 {
			t.Errorf("%d %s, want 500", got.Code, got.Body)
		}
	})
}

func TestUpgradesFailOverOnlyIfNotDelivered(t *testing.T) {
	for name, c := range map[string]struct {
		fail error
		want string
	}{
		"not delivered": {refusesConnection(), "a not-delivered b answered"},
		"undecided":     {io.ErrUnexpectedEOF, "a undecided"},
	} {
		t.Run(name, func(t *testing.T) {
			events := append(capablePeers(nil, "a", "b"), execs("a.test:1")[3])
			exec := gadget
			exec.Subresource = "exec"
			served := [roots]RootResult{{Groups: groups(pods)}, {Groups: groups(gadget, exec)}}
			events = append(events, Fetched{At: epoch, Results: []FetchResult{
				{ID: "a", Incarnation: "1", Roots: served}, {ID: "b", Incarnation: "1", Roots: served}}})
			s := newShell(t, Reference(), events, transportFunc(func(r *http.Request) (*http.Response, error) {
				if strings.HasPrefix(r.URL.Host, "a.") {
					return nil, c.fail
				}
				return says(200, ""), nil
			}))
			s.ask("GET", execPath, "", "Connection", "Upgrade", "Upgrade", "websocket")
			if got := strings.Join(s.seen.outcomes(), " "); got != c.want {
				t.Errorf("attempts: %s, want %s", got, c.want)
			}
		})
	}
}
