package traffic

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/answer"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

func TestOperationOfAnAnswer(t *testing.T) {
	ids := make(chan string, 1)
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		ids <- r.Header.Get("Audit-ID")
		respond(w, http.StatusNotFound, "application/json",
			`{"kind":"Status","reason":"NotFound","message":"configmaps \"x\" not found","details":{"name":"x","kind":"configmaps"}}`)
	})
	record := newLedger()
	c := connect(t, server, record)
	c.send(t.Context(), of("get", "x"), history.PurposeSweep, workload.Timeout)

	op := record.only(t)
	if sent := <-ids; op.ID == "" || sent != op.ID {
		t.Errorf("the audit ID sent was %q, the operation's is %q", sent, op.ID)
	}
	if op.Start <= 0 || op.End <= op.Start {
		t.Errorf("lasted from %s to %s", op.Start, op.End)
	}
	op.ID, op.Start, op.End = "", 0, 0
	want := history.Operation{
		Sent: &history.Sent{
			Purpose: history.PurposeSweep, Client: workload.ClientDynamic, User: workload.Admin, Server: "a", Verb: "get",
			GVR: history.GVR{Version: "v1", Resource: "configmaps"}, Namespace: workload.Namespace, Name: "x", Path: "/api/v1/namespaces/skewproof/configmaps/x",
		},
		Received: &history.Received{
			Status: http.StatusNotFound, Reason: "NotFound", Message: `configmaps "x" not found`, Body: history.BodyStatus, Content: history.ContentWhole,
			Missing: history.MissingObject,
		},
	}
	if diff := cmp.Diff(want, op); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A request may wait for other requests that test whether the server answers. The load causes this
// wait, so it must not count as the server's time.
func TestTheWaitForAConnectionIsNotTheServers(t *testing.T) {
	record := newLedger()
	c := connect(t, newAPIServer(t, notFound), record)
	var trying []func(error)
	for range maxConnecting {
		done, err := c.record.gate.pass(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		trying = append(trying, done)
	}
	asked := make(chan struct{}, 1)
	c.record.recorder = &noticed{record, asked}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		c.ask(t, of("get", "x"))
	}()
	<-asked // without the wait it would be sent now
	opened := record.Now()
	for _, done := range trying {
		done(nil)
	}
	<-sent
	if op := record.only(t); op.Start < opened {
		t.Errorf("it is said to have been sent at %s, and could not be before %s", op.Start, opened)
	}
}

// If a request was never sent, or was held back until hardly any time was left for its answer, it
// says nothing about the server.
func TestWhatIsHeldBackTooLongIsNoWordOnTheServer(t *testing.T) {
	for name, c := range map[string]struct {
		trying int           // number of other requests for which the request waits until its time is over
		since  time.Duration // age of the attempt
		want   history.Failure
	}{
		"sent at once":                     {0, 0, history.FailureTimeout},
		"sent after a moment":              {0, time.Second, history.FailureTimeout},
		"sent when most of its time is up": {0, patience + time.Second, history.FailureCanceled},
		"never sent":                       {maxConnecting, 0, history.FailureCanceled},
	} {
		t.Run(name, func(t *testing.T) {
			record := newLedger()
			client := connect(t, newAPIServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), record)
			for range c.trying {
				if _, err := client.record.gate.pass(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errAttemptTimeout)
			defer cancel()
			client.late(ctx, c.since, of("get", "x"))
			op := record.only(t)
			if op.Failure != c.want || op.Error == "" {
				t.Errorf("recorded as %q (%s), want %q", op.Failure, op.Error, c.want)
			}
			if c.trying > 0 && op.Start < 50*time.Millisecond {
				t.Errorf("it is said to have begun at %s, when it waited for others", op.Start)
			}
		})
	}
}

// The pages of a list share the time of one request, so the last page may have almost no time left.
func TestALatePageIsNoWordOnTheServer(t *testing.T) {
	ctx, timeOut := context.WithCancelCause(t.Context())
	defer timeOut(nil)
	record := newLedger()
	client := connect(t, newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("continue") {
			timeOut(errAttemptTimeout) // not by the clock, which would sometimes end the first page as well
			<-r.Context().Done()
			return
		}
		respond(w, http.StatusOK, "application/json", `{"kind":"ConfigMapList","metadata":{"continue":"more"},"items":[{}]}`)
	}), record)
	client.late(ctx, patience, workload.Request{Verb: "list", GVR: configMaps().GVR, Query: "limit=1", Then: workload.ThenPages})
	all := record.all()
	if len(all) != 2 || all[0].Status != http.StatusOK || all[1].Failure != history.FailureCanceled {
		t.Errorf("recorded as %+v, want a page, and a record without one", all)
	}
}

// late sends a request in an attempt that is already old. Its time ends with ctx.
func (c *client) late(ctx context.Context, since time.Duration, r workload.Request) {
	c.carryOut(ctx, &attempt{purpose: history.PurposeLoad, began: time.Now().Add(-since), next: r, more: true})
}

// noticed is a ledger that reports when its clock is read.
type noticed struct {
	*ledger
	read chan struct{}
}

func (n *noticed) Now() history.Time {
	now := n.ledger.Now()
	select {
	case n.read <- struct{}{}:
	default:
	}
	return now
}

// TestNothingIsRetried: client-go retries some requests. The recording transport must prevent this,
// so that each call of a client is one attempt and one operation, without a wait.
func TestNothingIsRetried(t *testing.T) {
	typed := of("get", "x")
	typed.Client = workload.ClientTyped
	requests := map[string]workload.Request{
		"typed get": typed, "dynamic list": of("list", ""), "dynamic watch": of("watch", ""), "raw": {Verb: history.VerbLegacy, Path: "/apis"},
	}
	answers := map[string]http.HandlerFunc{
		"503 with Retry-After": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			respond(w, http.StatusServiceUnavailable, "text/plain", "no peer")
		},
		"429 with Retry-After": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			respond(w, http.StatusTooManyRequests, "text/plain", "later")
		},
		"broken connection": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	}
	for what, request := range requests {
		for how, handler := range answers {
			t.Run(what+", "+how, func(t *testing.T) {
				record := newLedger()
				connect(t, newAPIServer(t, handler), record).ask(t, request)
				op := record.only(t)
				if how == "broken connection" {
					if op.Failure != history.FailureReset {
						t.Errorf("failure %q (%s), want %q", op.Failure, op.Error, history.FailureReset)
					}
				} else if op.RetryAfter != "1" || op.Body != history.BodyText {
					t.Errorf("Retry-After %q, body %q, want 1 and text", op.RetryAfter, op.Body)
				}
			})
		}
	}
}

func TestDiscoveryIsParsedOncePerHash(t *testing.T) {
	body, err := os.ReadFile("../answer/testdata/discovery/merged.apis.json")
	if err != nil {
		t.Fatal(err)
	}
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"E"`)
		if r.Header.Get("If-None-Match") == `"E"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		respond(w, http.StatusOK, workload.AcceptAggregated, string(body))
	})
	record := newLedger()
	c := connect(t, server, record)
	conditional := merged()
	conditional.Cached = workload.CachedLast
	for _, r := range []workload.Request{merged(), merged(), conditional} {
		c.ask(t, r)
	}

	all := record.all()
	if len(all) != 3 || record.parsed != 1 {
		t.Fatalf("%d operations and %d parsed documents, want 3 and 1", len(all), record.parsed)
	}
	for i, op := range all[:2] {
		if op.Verb != history.VerbDiscovery || op.Body != history.BodyDiscovery || op.ETag != `"E"` || op.Document != answer.Hash(body) {
			t.Errorf("request %d: %+v", i+1, op)
		}
	}
	if op := all[2]; op.Status != http.StatusNotModified || op.Document != answer.Hash(body) || op.Body != history.BodyNone {
		t.Errorf("conditional request: %+v, want 304, which says that it has the right document", op)
	}
}

// An answer that is not a document is still identified by its hash, and the operation records why
// it cannot be parsed.
func TestUnreadableDiscoveryIsNoDocument(t *testing.T) {
	for name, c := range map[string]struct{ contentType, body, want string }{
		"another version": {workload.AcceptAggregated, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v9"}`, "v9"},
		"cut short":       {workload.AcceptAggregated, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[`, "unexpected end of JSON input"},
		"no JSON":         {workload.AcceptAggregated, `welcome`, "invalid character"},
		"not aggregated":  {"application/json", `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`, `got kind "APIGroupList"`},
		"nothing":         {workload.AcceptAggregated, "", "unexpected end of JSON input"},
	} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t, func(w http.ResponseWriter, _ *http.Request) { respond(w, http.StatusOK, c.contentType, c.body) })
			record := newLedger()
			connect(t, server, record).ask(t, merged())
			if op := record.only(t); op.Document != answer.Hash([]byte(c.body)) || record.parsed != 0 || !strings.Contains(op.Message, c.want) {
				t.Errorf("document %q (%d recorded), message %q, want the hash and %q", op.Document, record.parsed, op.Message, c.want)
			}
		})
	}
}

func TestNotModifiedWithoutAConditionIsNoted(t *testing.T) {
	server := newAPIServer(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) })
	for _, path := range []string{"/apis", "/api"} {
		record := newLedger()
		r := merged()
		r.Path = path
		connect(t, server, record).ask(t, r)
		if op := record.only(t); op.Document != "" || !strings.Contains(op.Message, "not modified, though") {
			t.Errorf("%s: document %q, message %q", path, op.Document, op.Message)
		}
	}
}

func TestWatchIsRecordedWhenItsStreamEnds(t *testing.T) {
	const event = `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"}}}` + "\n"
	for _, tt := range []struct {
		name   string
		end    func(*http.Request)
		cancel bool
		want   history.Failure
	}{
		{name: "by the server", end: func(*http.Request) {}},
		{name: "by a broken connection", end: func(*http.Request) { panic(http.ErrAbortHandler) }, want: history.FailureReset},
		{name: "by the end of the run", end: func(r *http.Request) { <-r.Context().Done() }, cancel: true, want: history.FailureCanceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sent := make(chan struct{})
			server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
				respond(w, http.StatusOK, "application/json", event+event)
				_ = http.NewResponseController(w).Flush()
				close(sent)
				tt.end(r)
			})
			record := newLedger()
			c := connect(t, server, record)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.cancel {
				stream, err := c.dynamic.Resource(schema.GroupVersionResource(configMaps().GVR)).Watch(ctx, metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				<-stream.ResultChan()
				<-stream.ResultChan()
				cancel()
				for range stream.ResultChan() {
				}
			} else {
				c.send(ctx, of("watch", ""), history.PurposeLoad, workload.Timeout)
			}
			<-sent
			op := record.only(t)
			if op.Verb != "watch" || op.Body != history.BodyEvents || op.Events != 2 || op.Failure != tt.want {
				t.Errorf("%s of %q with %d events, failure %q (%s), want 2 events and %q",
					op.Verb, op.Body, op.Events, op.Failure, op.Error, tt.want)
			}
		})
	}
}

func TestNewClientsRefuses(t *testing.T) {
	good := []Target{{Server: "a", URL: "https://127.0.0.1:1"}}
	admin := []Identity{{Name: "admin"}}
	insecure := []Identity{{Name: "admin", Config: rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}}}}
	as := rest.Config{Impersonate: rest.ImpersonationConfig{UserName: "joe"}}
	for _, tt := range []struct {
		name       string
		targets    []Target
		identities []Identity
		want       string
	}{
		{"no targets", nil, admin, "at least one target"},
		{"plain HTTP", []Target{{Server: "a", URL: "http://127.0.0.1:1"}}, admin, "not an https URL"},
		{"no TLS verification", good, insecure, "skips TLS verification"},
		{"an impersonation of which the identity says nothing", good, []Identity{{Name: "x", User: "joe", Config: as}}, `impersonates "joe", but its user is "joe" and its impersonator ""`},
		{"an impersonation of another user", good, []Identity{{Name: "x", User: "jane", Impersonator: "admin", Config: as}}, `impersonates "joe", but its user is "jane"`},
		{"no impersonation", good, []Identity{{Name: "x", User: "joe", Impersonator: "admin"}}, `impersonates "", but`},
		{"the same server twice", append(good, good...), admin, "listed twice"},
		{"the same identity twice", good, append(admin, admin...), "listed twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := NewClients(tt.targets, tt.identities, newLedger()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one that says %q", err, tt.want)
			}
		})
	}
}

func TestNoProxyFromTheEnvironment(t *testing.T) {
	c := connect(t, newAPIServer(t, func(http.ResponseWriter, *http.Request) {}), newLedger())
	transport, ok := c.record.next.(*http.Transport)
	if !ok {
		t.Fatalf("the transport below is a %T", c.record.next)
	}
	// ProxyFromEnvironment reads the environment only once per process, so calling the transport's
	// Proxy is the reliable test.
	request, _ := http.NewRequest(http.MethodGet, "https://198.19.0.1:6443/", nil)
	if proxy, err := transport.Proxy(request); proxy != nil || err != nil {
		t.Errorf("requests go through %v (%v)", proxy, err)
	}
}

// If a proxy ends a truncated answer in order, the answer is complete for HTTP.
func TestPartOfAnAnswerThatLooksComplete(t *testing.T) {
	record := newLedger()
	server := newAPIServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"ConfigMapList","apiVersion":"v1","items":[{"metadata":`))
		w.(http.Flusher).Flush()
	})
	connect(t, server, record).ask(t, of("list", ""))
	if op := record.only(t); op.Status != http.StatusOK || op.Failure != history.FailureNone || op.Content != history.ContentBroken {
		t.Errorf("status %d, failure %q, content %q: want 200, none, broken", op.Status, op.Failure, op.Content)
	}
}
