package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/proxy/discovery"
)

const (
	gadgetsPath = "/apis/new.k8s.io/v1/gadgets" // served by peers only
	jobsPath    = "/apis/batch/v1/jobs"         // served by the local server
)

// transportFunc is a function as a transport.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// says makes an answer of a peer.
func says(code int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	return &http.Response{
		StatusCode: code, ProtoMajor: 1, ProtoMinor: 1, Header: h,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// refusesConnection returns the error of a transport if no process listens at the address.
func refusesConnection() error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, Err: io.ErrClosedPipe}
}

// dead is the transport to peers on which nothing listens.
var dead = transportFunc(func(*http.Request) (*http.Response, error) { return nil, refusesConnection() })

// journal is an Observer that stores the reports.
type journal struct {
	mu         sync.Mutex
	decisions  []Decision
	attempts   []AttemptResult
	ejected    []ServerID
	discovered []DiscoverySource
}

func (j *journal) Decided(_ context.Context, _ Request, d Decision, _ int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.decisions = append(j.decisions, d)
}

func (j *journal) Attempted(_ context.Context, _ Request, a AttemptResult) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.attempts = append(j.attempts, a)
}

func (j *journal) Ejected(_ context.Context, id ServerID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ejected = append(j.ejected, id)
}

func (j *journal) Discovered(_ context.Context, s DiscoverySource) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.discovered = append(j.discovered, s)
}

// outcomes describes the attempts in short form.
func (j *journal) outcomes() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var words []string
	for _, a := range j.attempts {
		word := a.Outcome.String()
		if a.Answered {
			word = "answered"
		}
		words = append(words, string(a.Peer)+" "+word)
	}
	return words
}

// shell is a handler and its parts.
type shell struct {
	*Handler
	user  user.Info // of requests whose context has none; nil: nobody
	store *Store
	seen  *journal
	local *localServer
}

// localServer answers "local" and keeps the last request.
type localServer struct {
	mu   sync.Mutex
	last *http.Request
	body string
	http.Handler
}

func (l *localServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	l.last = r
	handler, body := l.Handler, l.body
	l.mu.Unlock()
	if handler != nil {
		handler.ServeHTTP(w, r)
		return
	}
	if body == "" {
		body = "local"
	}
	io.WriteString(w, body)
}

func (l *localServer) request() *http.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// capablePeers makes the events after which everything is synchronised and the peers with these ids
// serve gadgets.
func capablePeers(addresses map[ServerID]string, ids ...ServerID) []Event {
	events := []Event{LocalFetched{Version: "v1.36.3", Roots: [roots]discovery.Groups{groups(pods), groups(jobs, status)}, At: epoch}}
	fetched := Fetched{At: epoch}
	for _, id := range ids {
		address, ok := addresses[id]
		if !ok {
			address = string(id) + ".test:6443"
		}
		events = append(events, PeerAppeared{ID: id, Incarnation: "1"}, PeerAddress{ID: id, Address: address})
		fetched.Results = append(fetched.Results, FetchResult{ID: id, Incarnation: "1", Version: "v1.37.1",
			Roots: [roots]RootResult{{Groups: groups(pods)}, {Groups: groups(jobs, status, gadget)}}})
	}
	return append(events, fetched, Synced{})
}

// newShell makes a handler that knows the events and picks the first peer. configure may change the
// whole configuration.
func newShell(t *testing.T, p Policy, events []Event, transport http.RoundTripper, configure ...func(*Config)) *shell {
	t.Helper()
	s := &shell{user: &user.DefaultInfo{Name: "alice", Groups: []string{"dev"}}, store: NewStore(p, "self"), seen: &journal{}, local: &localServer{}}
	s.store.Observe(events...)
	c := Config{
		Store: s.store, Local: s.local, Transport: transport, Observer: s.seen, Pick: func(int) int { return 0 },
	}
	for _, f := range configure {
		f(&c)
	}
	var err error
	if s.Handler, err = New(c); err != nil {
		t.Fatal(err)
	}
	return s
}

// ask serves a request without a network and returns the answer.
func (s *shell) ask(method, target string, body string, header ...string) *httptest.ResponseRecorder {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, reader)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header[header[i]] = append(r.Header[header[i]], header[i+1])
	}
	return s.serve(r)
}

func (s *shell) serve(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// by makes u the user of every request.
func (s *shell) by(u user.Info) *shell {
	s.user = u
	return s
}

// ServeHTTP puts the user into the request's context, as the filters of an API server do.
func (s *shell) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, known := apirequest.UserFrom(r.Context()); !known && s.user != nil {
		r = r.WithContext(apirequest.WithUser(r.Context(), s.user))
	}
	s.Handler.ServeHTTP(w, r)
}

// byProtocol sends requests for another protocol over a transport of their own, without HTTP/2.
type byProtocol struct{ others, upgrades http.RoundTripper }

func (b byProtocol) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" {
		return b.upgrades.RoundTrip(r)
	}
	return b.others.RoundTrip(r)
}

// fromPeers makes the handler take every caller for a peer.
func fromPeers(c *Config) { c.FromPeer = func(*http.Request) bool { return true } }

// peerServer starts a TLS server, as a rule in the role of a peer.
func peerServer(t *testing.T, http2 bool, handler http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.EnableHTTP2 = http2
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// transportTo makes a transport that trusts the servers, which all have the same certificate.
func transportTo(t *testing.T, s *httptest.Server, http2 bool) *http.Transport {
	t.Helper()
	transport := &http.Transport{
		TLSClientConfig:       trusting(s),
		ForceAttemptHTTP2:     http2,
		ExpectContinueTimeout: 10 * time.Second,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// address returns the address at which a server listens.
func address(s *httptest.Server) string { return s.Listener.Addr().String() }

// withInfo adds the request info, as the filters of an API server do.
func withInfo(r *http.Request, info *apirequest.RequestInfo) *http.Request {
	return r.WithContext(apirequest.WithRequestInfo(r.Context(), info))
}

// readHeader reads header lines as a server does.
func readHeader(lines string) (http.Header, error) {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET / HTTP/1.1\r\nHost: x\r\n" + lines + "\r\n")))
	if err != nil {
		return nil, err
	}
	return r.Header, nil
}
