package engine

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// down is a cluster whose servers do not run.
type down struct{ cluster.Reachable }

func (down) Serving(string) int { return 0 }

// A crowd that cannot gather does not end the run. The end of the run does.
func TestACrowdThatCannotGatherIsRefused(t *testing.T) {
	for subject, why := range map[string]string{
		scenario.SubjectReference: "it is not ready", scenario.SubjectBuiltin: "a crowd is for the subject reference",
	} {
		l := &load{cluster: down{}, servers: []string{"a"}, subject: subject}
		_, err := l.Gather(t.Context(), "a")
		if refused := (*scenario.RefusedStep)(nil); !errors.As(err, &refused) || err.Error() != "no crowd at a: "+why {
			t.Errorf("%s: %v, want %q", subject, err, why)
		}
	}
}

// A crowd has more watches open than one connection carries, and says if one is not answered.
func TestACrowdKeepsItsWatchesOpen(t *testing.T) {
	var others atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !r.URL.Query().Has("watch") || r.URL.Path != "/apis/x/v1/a" && r.URL.Path != "/apis/x/v1/b" {
			others.Add(1)
		}
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	paths := []string{"/apis/x/v1/a", "/apis/x/v1/b"}
	first, err := server.Client().Get(server.URL + paths[0] + "?watch") // else each watch makes a connection, and most throw it away
	if err != nil {
		t.Fatal(err)
	}
	_ = first.Body.Close()
	// The server cannot tell whether an answer has come, or comes again because a connection broke.
	client := server.Client()
	watches := &open{RoundTripper: client.Transport, all: make(chan struct{})}
	client.Transport = watches
	end := watchAll(t.Context(), client, server.URL, paths)
	select {
	case <-watches.all:
	case <-time.After(time.Minute):
		t.Errorf("%d watches are open, want %d", watches.now.Load(), crowdWatches)
	}
	if failed, problem := end(); failed > 0 || others.Load() > 0 {
		t.Errorf("%d watches failed (%s), %d requests are no such watches", failed, problem, others.Load())
	}
	server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	refused := errors.New("refused")
	client = &http.Client{Transport: refusing(func() error { cancel(); return refused })}
	if err := keepWatching(ctx, client, server.URL); !errors.Is(err, refused) {
		t.Errorf("a watch that is refused: %v", err)
	}
}

// open is a transport that counts the answers whose bodies are open.
type open struct {
	http.RoundTripper
	now  atomic.Int64
	once sync.Once
	all  chan struct{} // closed when a whole crowd is open
}

func (o *open) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := o.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = closing{answer.Body, func() { o.now.Add(-1) }}
		if o.now.Add(1) == crowdWatches {
			o.once.Do(func() { close(o.all) })
		}
	}
	return answer, err
}

type closing struct {
	io.ReadCloser
	closed func()
}

func (c closing) Close() error {
	c.closed()
	return c.ReadCloser.Close()
}

// refusing is a transport that answers nothing.
type refusing func() error

func (f refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f() }
