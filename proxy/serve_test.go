package proxy

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

func TestNewNamesMissingField(t *testing.T) {
	whole := Config{Store: NewStore(Reference(), "self"), Local: http.NotFoundHandler(), Transport: http.DefaultTransport}
	for name, c := range map[string]struct {
		spoil func(*Config)
		want  string
	}{
		"Store":     {func(c *Config) { c.Store = nil }, "Config.Store"},
		"Local":     {func(c *Config) { c.Local = nil }, "Config.Local"},
		"Transport": {func(c *Config) { c.Transport = nil }, "Config.Transport"},
		"a header":  {func(c *Config) { c.IdentityHeaders.Group = "no name" }, "Config.IdentityHeaders"},
	} {
		t.Run(name, func(t *testing.T) {
			config := whole
			c.spoil(&config)
			if _, err := New(config); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one that names %s", err, c.want)
			}
		})
	}
	if _, err := New(whole); err != nil {
		t.Errorf("a whole configuration: %v", err)
	}
}

func TestServeHTTPFollowsTheTable(t *testing.T) {
	answered := transportFunc(func(r *http.Request) (*http.Response, error) {
		return says(http.StatusTeapot, "from "+r.URL.Host), nil
	})
	known := slices.Clip(capablePeers(nil, "a", "b"))
	for name, c := range map[string]struct {
		policy    Policy
		events    []Event
		transport http.RoundTripper
		method    string
		path      string
		code      int
		body      string // a part of the body
	}{
		"served here":               {Reference(), known, answered, "GET", jobsPath, 200, "local"},
		"served by a peer":          {Reference(), known, answered, "GET", gadgetsPath, http.StatusTeapot, "from a.test:6443"},
		"served by nobody":          {Reference(), known, answered, "GET", "/apis/new.k8s.io/v1/others", 200, "local"},
		"neither of them":           {Reference(), known, answered, "GET", "/healthz", 200, "local"},
		"subresource of nobody":     {Reference(), known, answered, "GET", gadgetsPath + "/x/status", 200, "local"},
		"all peers dead":            {Reference(), known, dead, "GET", gadgetsPath, 503, "no peer that does could be reached"},
		"nothing known":             {Reference(), nil, answered, "GET", gadgetsPath, 503, "does not know yet"},
		"nothing known, upstream":   {Upstream137(), nil, answered, "GET", gadgetsPath, 200, "local"},
		"a peer unknown":            {Reference(), append(known, PeerAppeared{ID: "c"}), answered, "GET", "/apis/new.k8s.io/v1/others", 503, "c: "},
		"a tunnel is not proxied":   {Reference(), known, answered, "CONNECT", gadgetsPath, 200, "local"},
		"OpenAPI that peers have":   {Reference(), known, answered, "GET", "/openapi/v3/apis/new.k8s.io/v1", http.StatusTeapot, "from a.test"},
		"OpenAPI, upstream":         {Upstream137(), known, answered, "GET", "/openapi/v3/apis/new.k8s.io/v1", 200, "local"},
		"escaped slash in a name":   {Reference(), known, answered, "GET", gadgetsPath + "/a%2Fb", 200, "local"},
		"dots are not a resource":   {Reference(), known, answered, "GET", "/apis/new.k8s.io/v1/../v1/gadgets", 200, "local"},
		"empty parts are not paths": {Reference(), known, answered, "GET", "/apis//new.k8s.io/v1/gadgets", 200, "local"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, c.policy, c.events, c.transport)
			r := httptest.NewRequest(c.method, "http://client.test/", nil)
			u, err := r.URL.Parse("http://client.test" + c.path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(c.path, "..") { // Parse would resolve the dots
				u.Path = c.path
			}
			r.URL = u
			got := s.serve(r)
			if got.Code != c.code || !strings.Contains(got.Body.String(), c.body) {
				t.Errorf("%s %s: %d %q, want %d %q", c.method, c.path, got.Code, got.Body, c.code, c.body)
			}
		})
	}
}

func TestRequestInfoFromContext(t *testing.T) {
	s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
		return says(200, "peer"), nil
	}))
	r := httptest.NewRequest("GET", "/some/prefix", nil)
	info := &apirequest.RequestInfo{IsResourceRequest: true, Verb: "get", APIGroup: gadget.Group, APIVersion: gadget.Version, Resource: gadget.Resource}
	if got := s.serve(withInfo(r, info)).Body.String(); got != "peer" {
		t.Errorf("answered by %q, want the peer, because the filters before said that this is a gadget", got)
	}
}

func TestFailover(t *testing.T) {
	reset := errors.New("read: connection reset by peer")
	known := capablePeers(nil, "a", "b", "c", "d")
	for name, c := range map[string]struct {
		policy Policy
		method string
		path   string
		fail   map[string]error // by host, else the peer answers
		code   int
		want   []string // attempts
		blamed []string
		retry  string // the header Retry-After
	}{
		"not delivered: any request goes to the next": {
			Reference(), "POST", gadgetsPath, map[string]error{"a": refusesConnection()}, 201,
			[]string{"a not-delivered", "b answered"}, []string{"a"}, ""},
		"undecided: a GET goes to the next": {
			Reference(), "GET", gadgetsPath, map[string]error{"a": reset}, 201,
			[]string{"a undecided", "b answered"}, []string{"a"}, ""},
		"undecided: a POST does not": {
			Reference(), "POST", gadgetsPath, map[string]error{"a": reset}, 503,
			[]string{"a undecided"}, []string{"a"}, ""},
		"undecided: a PUT does not": {
			Reference(), "PUT", gadgetsPath + "/x", map[string]error{"a": reset}, 503,
			[]string{"a undecided"}, []string{"a"}, ""},
		"undecided: a DELETE does not": {
			Reference(), "DELETE", gadgetsPath + "/x", map[string]error{"a": reset}, 503,
			[]string{"a undecided"}, []string{"a"}, ""},
		"bounded": {
			Reference(), "GET", gadgetsPath, map[string]error{"a": refusesConnection(), "b": refusesConnection(), "c": refusesConnection()}, 503,
			[]string{"a not-delivered", "b not-delivered", "c not-delivered"}, []string{"a", "b", "c"}, ""},
		"no peer reached: it is unknown when to repeat a POST": {
			Reference(), "POST", gadgetsPath, map[string]error{"a": refusesConnection(), "b": refusesConnection(), "c": refusesConnection()}, 503,
			[]string{"a not-delivered", "b not-delivered", "c not-delivered"}, []string{"a", "b", "c"}, ""},
		"upstream does not fail over": {
			Upstream137(), "GET", gadgetsPath, map[string]error{"a": refusesConnection()}, 503,
			[]string{"a not-delivered"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, c.policy, known, transportFunc(func(r *http.Request) (*http.Response, error) {
				if err := c.fail[strings.TrimSuffix(r.URL.Host, ".test:6443")]; err != nil {
					traced(r.Context(), err == reset) // as net/http does
					return nil, err
				}
				return says(201, ""), nil
			}), func(config *Config) { config.Now = func() time.Time { return epoch } })
			got := s.ask(c.method, c.path, "")
			if got.Code != c.code {
				t.Errorf("%d %s, want %d", got.Code, got.Body, c.code)
			}
			if diff := cmp.Diff(c.want, s.seen.outcomes()); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
			var blamed []string
			for _, p := range s.store.Table().Peers() {
				if p.EjectedUntil.After(epoch) {
					blamed = append(blamed, string(p.ID))
				}
			}
			if diff := cmp.Diff(c.blamed, blamed); diff != "" {
				t.Errorf("avoided peers (-want +got):\n%s", diff)
			}
			if len(s.seen.ejected) != len(c.blamed) {
				t.Errorf("%q reported as avoided, want %q", s.seen.ejected, c.blamed)
			}
			if retry := got.Header().Get("Retry-After"); retry != c.retry {
				t.Errorf("Retry-After %q, want %q", retry, c.retry)
			}
		})
	}
}

// An event between two attempts must not turn a failed attempt into a 404.
func TestOneTableForOneRequest(t *testing.T) {
	var s *shell
	s = newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(*http.Request) (*http.Response, error) {
		s.store.Observe(PeerGone{ID: "a"})
		return nil, refusesConnection()
	}))
	if got := s.ask("GET", gadgetsPath, ""); got.Code != 503 {
		t.Errorf("%d %s, want 503: the only peer that serves it could not be reached", got.Code, got.Body)
	}
	if got := s.ask("GET", gadgetsPath, ""); got.Body.String() != "local" {
		t.Errorf("%d %s, want the local server's own answer: no server serves it any more", got.Code, got.Body)
	}
}

func TestPeerErrorsArePassedOn(t *testing.T) {
	for name, c := range map[string]struct {
		policy Policy
		path   string
		code   int
		retry  []string // the header Retry-After
	}{
		"too many requests":               {Reference(), gadgetsPath, 429, []string{"7"}},
		"its own error":                   {Reference(), gadgetsPath, 500, []string{"7"}},
		"a bad gateway":                   {Reference(), gadgetsPath, 502, []string{"7"}},
		"a timeout":                       {Reference(), gadgetsPath, 504, []string{"7"}},
		"unavailable for ever":            {Reference(), gadgetsPath, 503, nil},
		"a pod is unavailable for a time": {Reference(), "/apis/new.k8s.io/v1/proxy/namespaces/default/gadgets/x", 503, []string{"7"}},
		"upstream passes on everything":   {Upstream137(), gadgetsPath, 503, []string{"7"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, c.policy, capablePeers(nil, "a", "b"), transportFunc(func(*http.Request) (*http.Response, error) {
				said := says(c.code, "mine")
				said.Header["Retry-After"] = c.retry
				return said, nil
			}))
			got := s.ask("GET", c.path, "")
			if got.Code != c.code || got.Body.String() != "mine" || !slices.Equal(got.Header()["Retry-After"], c.retry) {
				t.Errorf("%d %q %v, want the peer's own %d with %q", got.Code, got.Body, got.Header(), c.code, c.retry)
			}
			if diff := cmp.Diff([]string{"a answered"}, s.seen.outcomes()); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
		})
	}
}

// A kube-apiserver that has begun to stop answers new requests on old connections like this.
func TestPeerPutsOff(t *testing.T) {
	putsOff := func() *http.Response { return says(503, "apiserver is shutting down", "Retry-After", "7") }
	for _, method := range []string{"GET", "POST", "DELETE"} {
		s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Host, "a.") {
				return putsOff(), nil
			}
			return says(200, "done"), nil
		}))
		if got := s.ask(method, gadgetsPath, ""); got.Code != 200 || got.Body.String() != "done" {
			t.Errorf("%s: %d %s, want the answer of b: a has not carried the request out", method, got.Code, got.Body)
		}
		if diff := cmp.Diff([]string{"a refused", "b answered"}, s.seen.outcomes()); diff != "" {
			t.Errorf("%s: attempts (-want +got):\n%s", method, diff)
		}

		alone := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(*http.Request) (*http.Response, error) { return putsOff(), nil }))
		got := alone.ask(method, gadgetsPath, "")
		if got.Code != 503 || got.Header().Get("Retry-After") != "1" || !strings.Contains(got.Body.String(), "a: it says that it cannot serve this now") {
			t.Errorf("%s, no other peer: %d %v %s; want a 503 that names a, with Retry-After", method, got.Code, got.Header(), got.Body)
		}
	}
}

func TestClientGoesAway(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) {
		cancel()
		<-r.Context().Done()
		return nil, r.Context().Err()
	}))
	func() {
		defer func() {
			if got := recover(); got != http.ErrAbortHandler {
				t.Errorf("ended with %v, want http.ErrAbortHandler", got)
			}
		}()
		s.serve(httptest.NewRequest("GET", gadgetsPath, nil).WithContext(ctx))
	}()
	if diff := cmp.Diff([]string{"a undecided"}, s.seen.outcomes()); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if p := s.store.Table().Peers()[0]; !p.EjectedUntil.IsZero() {
		t.Errorf("peer %s is avoided though the client went away", p.ID)
	}
}

func TestRequestDeadline(t *testing.T) {
	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
		return nil, r.Context().Err()
	}))
	if got := s.serve(httptest.NewRequest("GET", gadgetsPath, nil).WithContext(ctx)); got.Code != http.StatusGatewayTimeout {
		t.Errorf("%d %s, want 504", got.Code, got.Body)
	}
}

func TestBrokenRequestBody(t *testing.T) {
	s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) {
		_, err := io.ReadAll(r.Body)
		return nil, err
	}))
	for name, c := range map[string]struct {
		body io.Reader
		code int
	}{
		"broken":    {io.MultiReader(strings.NewReader("half"), errorReader{errors.New("malformed chunk")}), 400},
		"too large": {http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("too much")), 3), 413},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.serve(httptest.NewRequest("POST", gadgetsPath, c.body)); got.Code != c.code {
				t.Errorf("%d %s, want %d", got.Code, got.Body, c.code)
			}
			if p := s.store.Table().Peers()[0]; !p.EjectedUntil.IsZero() {
				t.Errorf("peer %s is avoided though the client's body was broken", p.ID)
			}
		})
	}
}

// A short body is read before a peer is asked, so that a slow client occupies only this server.
func TestShortBodiesAreReadFirst(t *testing.T) {
	s := newShell(t, Reference(), capablePeers(nil, "a"), neverAsked(t))
	r := httptest.NewRequest("POST", gadgetsPath, errorReader{errors.New("the client is gone")})
	r.ContentLength = 100
	if got := s.serve(r); got.Code != http.StatusBadRequest {
		t.Errorf("%d %s, want 400", got.Code, got.Body)
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

// TestOnlyUpgradesStartGoroutines: the simulator runs the handler as a coroutine. Except for
// upgrades, and for informational answers, which no simulated peer sends, it must not start
// goroutines, select, or read the clock.
func TestOnlyUpgradesStartGoroutines(t *testing.T) {
	files := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			what := ""
			switch n := n.(type) {
			case *ast.GoStmt:
				what = "starts a goroutine"
			case *ast.SelectStmt:
				what = "selects"
			case *ast.CallExpr:
				if x, ok := n.Fun.(*ast.SelectorExpr); ok {
					calls++
					if p, ok := x.X.(*ast.Ident); ok && p.Name == "time" && (x.Sel.Name == "Now" || x.Sel.Name == "Since" || x.Sel.Name == "Sleep") {
						what = "reads the clock"
					}
				}
			}
			if what != "" && !slices.Contains([]string{"upgrade.go", "informed.go", "store.go"}, name) {
				t.Errorf("%s: %s", files.Position(n.Pos()), what)
			}
			return true
		})
	}
	if calls < 100 {
		t.Errorf("looked at %d calls: the check has not found the package", calls)
	}
}
