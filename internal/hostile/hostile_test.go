package hostile

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// observer is a server that records the attacks of hostile clients.
type observer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   atomic.Int64 // bytes
	received atomic.Int64 // bytes on all connections, encrypted
	ended    atomic.Int64 // connections
	waiting  atomic.Int64 // handlers that wait for a body
	writing  atomic.Int64 // handlers whose answer the client does not read
	gone     atomic.Int64 // handlers whose client left
}

func newObserver(t *testing.T) (*observer, Target) {
	t.Helper()
	o := &observer{}
	o.Server = httptest.NewUnstartedServer(o)
	o.Listener = countingListener{o.Listener, &o.received}
	o.EnableHTTP2 = true
	o.Config.ErrorLog = log.New(io.Discard, "", 0)
	o.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			o.ended.Add(1)
		}
	}
	o.StartTLS()
	t.Cleanup(o.CloseClientConnections)
	roots := x509.NewCertPool()
	roots.AddCert(o.Certificate())
	return o, Target{
		Address: o.Listener.Addr().String(), TLS: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: "example.com"},
		Tokens: []string{"one", "two"}, Readers: []string{"three"}, Resources: []string{"/apis/example.com/v1/widgets", "/apis/example.com/v2/gadgets"},
		Pod: "/api/v1/namespaces/n/pods/p", Large: "/large",
	}
}

func (o *observer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.requests = append(o.requests, r)
	o.mu.Unlock()
	switch {
	case r.URL.Path == "/large":
		o.writing.Add(1)
		_, _ = w.Write(make([]byte, 1<<20))
		o.writing.Add(-1)
	case r.URL.Query().Has("watch"), r.Method == http.MethodGet && r.ProtoMajor == 2:
		select {
		case <-r.Context().Done():
			o.gone.Add(1)
		case <-time.After(time.Minute):
		}
	case r.Header.Get("Expect") == "":
		o.waiting.Add(1)
		for p := make([]byte, 4096); ; {
			n, err := r.Body.Read(p)
			o.bodies.Add(int64(n))
			if err != nil {
				break
			}
		}
		o.waiting.Add(-1)
	}
}

// waits reports whether at least n handlers wait for bodies.
func (o *observer) waits(n int64) bool { return o.waiting.Load() >= n }

// asked counts the requests for which holds returns true.
func (o *observer) asked(holds func(*http.Request) bool) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.requests {
		if holds(r) {
			n++
		}
	}
	return n
}

type countingListener struct {
	net.Listener
	received *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return countingConn{conn, l.received}, err
}

type countingConn struct {
	net.Conn
	received *atomic.Int64
}

func (c countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	return n, err
}

// Each client does what its name says, and ends with the context.
func TestClients(t *testing.T) {
	anonymous := func(r *http.Request) bool { return r.Header.Get("Authorization") == "" }
	posted := func(r *http.Request) bool { return r.Method == http.MethodPost && r.ContentLength == 3_000_000 }
	sees := map[string]func(*observer) bool{
		"ask anonymously on a shared connection": func(o *observer) bool { return o.asked(anonymous) >= 80 },
		"ask anonymously for merged discovery": func(o *observer) bool {
			return o.asked(func(r *http.Request) bool { return anonymous(r) && r.URL.Path == "/apis" }) > 20
		},
		"make up tokens": func(o *observer) bool {
			made := map[string]bool{}
			return o.asked(func(r *http.Request) bool { // counts the different tokens
				token := r.Header.Get("Authorization")
				known := made[token]
				made[token] = true
				return strings.HasPrefix(token, "Bearer made-up-") && !known
			}) >= streams
		},
		"use methods that are none": func(o *observer) bool {
			return o.asked(func(r *http.Request) bool { return r.Method == "(" }) > 20
		},
		"ask for discovery within a time that is none": func(o *observer) bool {
			timeout := func(r *http.Request) bool { return r.URL.Path == "/apis" && r.URL.Query().Get("timeout") == "x" }
			return o.asked(timeout) > o.asked(func(r *http.Request) bool { return timeout(r) && anonymous(r) }) && o.asked(anonymous) > 0
		},
		"announce bodies and send none": func(o *observer) bool { return o.waits(50) && o.asked(posted) >= 50 && o.bodies.Load() == 0 },
		"announce bodies on the paths of streams": func(o *observer) bool {
			return o.waiting.Load() >= 50 && o.asked(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/pods/p/exec") }) > 10
		},
		"send bodies a byte a second": func(o *observer) bool { return o.waits(50) && o.bodies.Load() > 50 && o.bodies.Load() < 10_000 },
		"upload what is refused":      func(o *observer) bool { return o.bodies.Load() >= 3<<20 },
		"expect to be told to continue, and do not": func(o *observer) bool {
			return o.asked(func(r *http.Request) bool { return r.Header.Get("Expect") != "" }) > 0
		},
		"do not read answers": func(o *observer) bool { return o.writing.Load() >= 50 },
		"ask for odd targets": func(o *observer) bool {
			return o.asked(func(r *http.Request) bool { return r.Method == http.MethodConnect }) > 0 &&
				o.asked(func(r *http.Request) bool { return r.URL.Scheme == "x" }) > 0
		},
		"forge headers": func(o *observer) bool {
			return o.asked(func(r *http.Request) bool {
				return r.Header.Get("X-Remote-User") != "" && r.Header.Get("X-Kubernetes-Peer-Proxied") == "true"
			}) > 0
		},
		"send large headers": func(o *observer) bool {
			return o.asked(func(r *http.Request) bool { return len(r.Header) >= 100 }) > 0 && o.received.Load() > 2<<20
		},
		"open and reset streams":        func(o *observer) bool { return o.gone.Load() > 50 },
		"flood with SETTINGS":           func(o *observer) bool { return o.received.Load() > 20_000*15 },
		"flood with PING":               func(o *observer) bool { return o.ended.Load() > 0 && o.received.Load() > 10_000*17 },
		"send CONTINUATION without end": func(o *observer) bool { return o.ended.Load() > 0 && o.asked(anything) == 0 },
		"open watches and leave":        func(o *observer) bool { return o.gone.Load() >= 200 },
		"watch with rights, and read nothing": func(o *observer) bool {
			return o.asked(func(r *http.Request) bool {
				return r.URL.Query().Has("watch") && r.Header.Get("Authorization") == "Bearer three"
			}) >= streams
		},
		"list with rights, and leave": func(o *observer) bool {
			return o.gone.Load() >= streams && o.asked(func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer three" }) >= streams
		},
		"ask for upgrades and send something else": func(o *observer) bool {
			return o.asked(func(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }) > 3
		},
		"connect and say nothing": func(o *observer) bool { return o.received.Load() > 0 },
	}
	for _, c := range All() {
		t.Run(c.Name, func(t *testing.T) {
			seen := sees[c.Name]
			if seen == nil {
				t.Fatal("this test does not know what the client does")
			}
			t.Parallel()
			c.Pause /= 10
			attackUntil(t, c, seen)
		})
	}
}

func anything(*http.Request) bool { return true }

// attackUntil lets a client attack a server until the server has seen what it must see.
func attackUntil(t *testing.T, c Client, seen func(*observer) bool) {
	t.Helper()
	o, target := newObserver(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan []Done)
	go func() { ended <- Attack(ctx, []Client{c}, target) }()
	for tick := time.NewTicker(10 * time.Millisecond); !seen(o) && ctx.Err() == nil; <-tick.C {
	}
	if ctx.Err() != nil {
		t.Errorf("the server has not seen it within a minute: %d requests, %d bytes, %d handlers wait for bodies and %d for readers, "+
			"%d were left, %d connections ended",
			o.asked(anything), o.received.Load(), o.waiting.Load(), o.writing.Load(), o.gone.Load(), o.ended.Load())
	}
	cancel()
	if done := <-ended; done[0].Failed > 0 {
		t.Error(done[0])
	}
}

// A client reports that its server does not answer.
func TestAttackThatDoesNotArrive(t *testing.T) {
	o, target := newObserver(t)
	o.Close()
	var all sync.WaitGroup
	for _, c := range All() {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			done := Attack(ctx, []Client{c}, target)[0]
			if done.Attacks > 0 || done.Failed == 0 || !strings.Contains(done.String(), "did not reach the server: dial tcp") {
				t.Errorf("%s", done)
			}
		})
	}
	all.Wait()
}
