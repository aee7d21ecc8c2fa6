package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// One user may have two of eight requests in flight until the headers of the answers arrive.
// Streams do not count.
func TestInFlightIsBounded(t *testing.T) {
	policy := Reference()
	policy.Routing.InFlight = 8
	held := make(chan struct{})
	began := make(chan string, 10)
	s := newShell(t, policy, capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
		began <- r.URL.RequestURI()
		<-held
		return says(200, ""), nil
	}))
	var running sync.WaitGroup
	start := func(target string) {
		t.Helper()
		ended := make(chan int, 1)
		running.Go(func() { ended <- s.ask("GET", target, "").Code })
		select {
		case got := <-began:
			if got != target {
				t.Errorf("began %s, want %s", got, target)
			}
		case code := <-ended:
			t.Fatalf("%s was answered with %d, want it to be sent to the peer", target, code)
		}
	}
	for _, stream := range []string{"?watch=1", "?watch=true", "?watch=T"} { // the headers of a watch keep it waiting
		start(gadgetsPath + stream)
	}
	start(gadgetsPath + "/1")
	start(gadgetsPath + "/2")
	got := s.ask("POST", gadgetsPath, "x")
	if got.Code != 503 || !strings.Contains(got.Body.String(), "too many requests") || got.Header().Get("Retry-After") == "" {
		t.Errorf("the third: %d %v %s, want 503 after which anything may be repeated", got.Code, got.Header(), got.Body)
	}
	if diff := cmp.Diff([]string{"a busy"}, s.seen.outcomes()); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if p := s.store.Table().Peers()[0]; !p.EjectedUntil.IsZero() {
		t.Error("the peer is avoided though it is only busy")
	}
	start(gadgetsPath + "?watch=1")
	close(held)
	running.Wait()
	if n := len(s.inFlight.peers); n != 0 {
		t.Errorf("%d peers have requests in flight, want none", n)
	}
}

func TestInFlightSharePerUser(t *testing.T) {
	var f inFlight
	var leave func()
	enter := func(peer ServerID, name string) bool {
		l, ok := f.enter(peer, &user.DefaultInfo{Name: name}, 8)
		if ok {
			leave = l
		}
		return ok
	}
	for i := range 8 {
		if got, want := enter("a", "slow"), i < 2; got != want {
			t.Errorf("request %d of the slow user is let in: %t, want %t", i, got, want)
		}
	}
	leaveSlow := leave
	if !enter("a", "other") || !enter("b", "slow") {
		t.Error("another user, or the same user at another peer, is not let in")
	}
	leaveSlow()
	leaveSlow() // a second call does nothing
	if !enter("a", "slow") || enter("a", "slow") {
		t.Error("after one request of the slow user has ended, want exactly one more to be let in")
	}
}

// A request is no longer in flight while its client reads the answer slowly.
func TestSlowReaderIsNotInFlight(t *testing.T) {
	policy := Reference()
	policy.Routing.InFlight = 1
	var s *shell
	s = newShell(t, policy, capablePeers(nil, "a"), transportFunc(func(*http.Request) (*http.Response, error) {
		answer := says(200, "")
		answer.ContentLength = -1
		answer.Body = closeFunc{io.MultiReader(readerFunc(func([]byte) (int, error) {
			if n := len(s.inFlight.peers); n != 0 {
				t.Errorf("%d peers have requests in flight while the answer is read, want none", n)
			}
			return 0, io.EOF
		}), strings.NewReader("whole")), func() {}}
		return answer, nil
	}))
	if got := s.ask("GET", gadgetsPath, ""); got.Body.String() != "whole" {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

func TestInFlightIsReleasedByAborts(t *testing.T) {
	policy := Reference()
	policy.Routing.InFlight = 1
	s := newShell(t, policy, capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
		answer := says(200, "")
		answer.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF))
		return answer, nil
	}))
	for range 3 {
		func() {
			defer func() {
				if got := recover(); got != http.ErrAbortHandler {
					t.Errorf("ended with %v, want http.ErrAbortHandler", got)
				}
			}()
			s.ask("GET", gadgetsPath, "")
		}()
	}
	if diff := cmp.Diff([]string{"a answered", "a answered", "a answered"}, s.seen.outcomes()); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// A caller that announces a body and does not send it occupies no place at a peer.
func TestBodiesThatDoNotComeOccupyNoPeer(t *testing.T) {
	policy := Reference()
	policy.Routing.InFlight = 8
	s := newShell(t, policy, capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		return says(200, "peer"), nil
	}), func(c *Config) {
		alice := c.Identify
		c.Identify = func(r *http.Request) (user.Info, error) {
			if u, ok := apirequest.UserFrom(r.Context()); ok {
				return u, nil
			}
			return alice(r)
		}
	})
	var running sync.WaitGroup
	begun := make(chan struct{}, 80) // a request is being read, or has ended
	body, client := io.Pipe()
	for i := range 40 {
		r := httptest.NewRequest("POST", gadgetsPath, io.MultiReader(readerFunc(func([]byte) (int, error) {
			begun <- struct{}{}
			return 0, io.EOF
		}), body))
		r.ContentLength = 100
		r = r.WithContext(apirequest.WithUser(r.Context(), &user.DefaultInfo{Name: "slow-" + string(rune('a'+i%16)), Groups: []string{"x"}}))
		running.Go(func() {
			defer func() { begun <- struct{}{} }()
			s.serve(r)
		})
		<-begun
	}
	if got := s.ask("GET", gadgetsPath, ""); got.Body.String() != "peer" {
		t.Errorf("%d %s, want the peer's answer", got.Code, got.Body)
	}
	client.CloseWithError(io.ErrUnexpectedEOF)
	running.Wait()
}

// However many requests one user has at a peer, another user gets a place. The control plane gets a
// place even if all places are taken.
func TestControlPlaneHasPlacesOfItsOwn(t *testing.T) {
	var f inFlight
	fill := func(name string, groups ...string) (n int) {
		for {
			if _, ok := f.enter("a", &user.DefaultInfo{Name: name, Groups: groups}, 40); !ok {
				return n
			}
			n++
		}
	}
	for i := range 4 {
		fill("greedy-" + string(rune('a'+i)))
	}
	if fill("modest") == 0 {
		t.Error("after four greedy users, another gets no place")
	}
	for i := range 40 {
		fill("one-of-many-" + string(rune('a'+i)))
	}
	for name, c := range map[string]struct {
		groups []string
		want   bool
	}{
		"nobody":                         {[]string{"system:authenticated", "system:node", "system:serviceaccounts:kube-systems"}, false},
		"system:kube-proxy":              {nil, false},
		"system:kube-scheduler":          {nil, true},
		"system:kube-controller-manager": {nil, true},
		"system:node:n":                  {[]string{"system:nodes"}, true},
		"admin":                          {[]string{"system:masters"}, true},
		"system:serviceaccount:kube-system:coredns": {[]string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}, true},
	} {
		leave, ok := f.enter("a", &user.DefaultInfo{Name: name, Groups: c.groups}, 40)
		if ok != c.want {
			t.Errorf("%s, when all places are taken, gets one: %t, want %t", name, ok, c.want)
		}
		if ok {
			leave()
		}
	}
}

// Users with rights can together fill the places at a peer, as they can fill a priority level of a
// kube-apiserver. The cost for others is bounded. Others get an error that says when to try again.
// Requests to the local server and requests of the control plane cost nothing more.
func TestManyUsersWithRightsFillAPeer(t *testing.T) {
	const users, places = 20, 400 // as many places as the reference has
	released, arrived := make(chan struct{}), make(chan struct{}, 2*places)
	s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
		arrived <- struct{}{}
		if r.URL.Query().Has("slow") {
			<-released
		}
		return says(200, "peer"), nil
	}), func(c *Config) {
		c.Identify = func(r *http.Request) (user.Info, error) {
			u, _ := apirequest.UserFrom(r.Context())
			return u, nil
		}
	})
	if got := Reference().Routing.InFlight; got != places {
		t.Fatalf("the reference has %d places, and this test is about %d", got, places)
	}
	as := func(name, target string, groups ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", target, nil)
		return s.serve(r.WithContext(apirequest.WithUser(r.Context(), &user.DefaultInfo{Name: name, Groups: groups})))
	}
	var running sync.WaitGroup
	// fill takes places for a user until one is refused, and returns how many it got.
	fill := func(name string) (n int) {
		for {
			refused := make(chan struct{})
			running.Go(func() {
				if as(name, gadgetsPath+"?slow").Code == http.StatusServiceUnavailable {
					close(refused)
				}
			})
			select {
			case <-arrived:
				n++
			case <-refused:
				return n
			}
		}
	}
	taken := 0
	for i := range users {
		n := fill("user-" + string(rune('a'+i)))
		if i == 0 && n != places/4 {
			t.Errorf("the first user gets %d places, want a quarter of %d", n, places)
		}
		taken += n
	}
	if taken < places*9/10 {
		t.Errorf("%d users take %d of %d places, want nearly all", users, taken, places)
	}
	for i := 0; fill("late-"+string(rune('a'+i))) > 0; i++ {
		if i > places {
			t.Fatal("the places are never taken")
		}
	}
	got := as("modest", gadgetsPath)
	if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
		t.Errorf("another user: %d %s, Retry-After %q; want 503 that says when to try again", got.Code, got.Body, got.Header().Get("Retry-After"))
	}
	if got := as("modest", "/api/v1/pods"); got.Body.String() != "local" {
		t.Errorf("at the local server: %d %s", got.Code, got.Body)
	}
	for name, group := range map[string]string{"admin": user.SystemPrivilegedGroup, "system:node:n": user.NodesGroup, "system:kube-scheduler": ""} {
		if got := as(name, gadgetsPath, group); got.Body.String() != "peer" {
			t.Errorf("%s: %d %s, want the peer's answer", name, got.Code, got.Body)
		}
	}
	close(released)
	running.Wait()
	if got := as("modest", gadgetsPath); got.Body.String() != "peer" {
		t.Errorf("when the places are free: %d %s", got.Code, got.Body)
	}
}

type closeFunc struct {
	io.Reader
	close func()
}

func (c closeFunc) Close() error { c.close(); return nil }
