package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// A crowd asks for what only other servers serve, and only for collections that it can list, watch
// and create objects in.
func TestCrossing(t *testing.T) {
	resource := func(group, name string, namespaced bool, verbs ...string) history.Resource {
		return history.Resource{GVR: history.GVR{Group: group, Version: "v1", Resource: name}, Namespaced: namespaced, Verbs: verbs}
	}
	all := []string{"create", "get", "list", "watch"}
	pods, rules, claims := resource("", "pods", true, all...), resource("x.io", "rules", false, all...), resource("x.io", "claims", true, all...)
	served := map[string]history.Document{
		"a": {Resources: []history.Resource{pods, rules, claims, resource("x.io", "reviews", false, "create"), resource("x.io", "frozen", false, "list", "watch")}},
		"b": {Resources: []history.Resource{pods}},
		"c": {Resources: []history.Resource{rules, resource("", "secrets", true, all...)}},
	}
	for server, want := range map[string][]string{
		"a": {"/api/v1/namespaces/skewproof/secrets"},
		"b": {"/api/v1/namespaces/skewproof/secrets", "/apis/x.io/v1/namespaces/skewproof/claims", "/apis/x.io/v1/rules"},
	} {
		if got := crossing(served, server); !slices.Equal(got, want) {
			t.Errorf("at %s: %q, want %q", server, got, want)
		}
	}
	if got := crossing(map[string]history.Document{"a": served["a"], "b": served["a"]}, "b"); len(got) > 0 {
		t.Errorf("of equal servers: %q", got)
	}
}

// issuing is a cluster of servers at these URLs, which give tokens or do not. A server without a
// URL does not run.
type issuing struct {
	cluster.Reachable
	urls map[string]string
}

func (c issuing) Serving(name string) int { return len(c.urls[name]) }
func (c issuing) Direct(name string) (*rest.Config, error) {
	return &rest.Config{Host: c.urls[name]}, nil
}

// The server of a crowd may be out of action when the crowd gathers, so any server may give its
// caller a token.
func TestAnyServerGivesTheCallerOfACrowdAToken(t *testing.T) {
	at := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	token := func(of string) string {
		return at(201, `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":{"token":"token of `+of+`"}}`)
	}
	broken := at(500, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no etcd","code":500}`)
	for name, c := range map[string]struct {
		urls        map[string]string
		want, wrong string // the token, or parts of the error
	}{
		"the crowd's server":              {map[string]string{"a": token("a"), "b": token("b")}, "token of b", ""},
		"another one":                     {map[string]string{"a": token("a"), "b": broken}, "token of a", ""},
		"another one, as it is down":      {map[string]string{"a": token("a")}, "token of a", ""},
		"none, as each is broken":         {map[string]string{"a": broken, "b": broken}, "", "no etcd"},
		"the token that is there already": {nil, "kept", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := &load{cluster: issuing{urls: c.urls}, servers: []string{"a", "b"}}
			if c.urls == nil {
				l.crowdToken = c.want
			}
			err := l.requestCrowdToken(t.Context(), "b")
			if l.crowdToken != c.want || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("token %q, error %v", l.crowdToken, err)
			}
		})
	}
}

// A crowd that cannot gather does not end the run. The end of the run does.
func TestACrowdWithoutATokenIsRefused(t *testing.T) {
	for subject, why := range map[string]string{
		scenario.SubjectReference: "it is not ready", scenario.SubjectBuiltin: "a crowd is for the subject reference",
	} {
		l := &load{cluster: issuing{}, servers: []string{"a"}, subject: subject}
		_, err := l.Gather(t.Context(), "a")
		if refused := (*scenario.RefusedStep)(nil); !errors.As(err, &refused) || err.Error() != "no crowd at a: "+why {
			t.Errorf("%s: %v, want %q", subject, err, why)
		}
	}
}

// A crowd has more watches open than one connection carries, and says if one is not answered.
func TestACrowdKeepsItsWatchesOpen(t *testing.T) {
	var open, others atomic.Int64
	all := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !r.URL.Query().Has("watch") || r.URL.Path != "/apis/x/v1/a" && r.URL.Path != "/apis/x/v1/b" {
			others.Add(1)
		}
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		if open.Add(1) == crowdWatches {
			close(all)
		}
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	paths := []string{"/apis/x/v1/a", "/apis/x/v1/b"}
	end := watchAll(t.Context(), server.Client(), server.URL, paths)
	select {
	case <-all:
	case <-time.After(time.Minute):
		t.Errorf("%d watches are open, want %d", open.Load(), crowdWatches)
	}
	if failed, problem := end(); failed > 0 || others.Load() > 0 {
		t.Errorf("%d watches failed (%s), %d requests are no such watches", failed, problem, others.Load())
	}
	server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	refused := errors.New("refused")
	client := &http.Client{Transport: refusing(func() error { cancel(); return refused })}
	if err := keepWatching(ctx, client, server.URL); !errors.Is(err, refused) {
		t.Errorf("a watch that is refused: %v", err)
	}
}

// refusing is a transport that answers nothing.
type refusing func() error

func (f refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f() }
