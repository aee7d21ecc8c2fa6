package proxy

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

const clientsTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestSpans(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	var parents []string
	s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) {
		parents = append(parents, r.Header.Get("Traceparent"))
		if strings.HasPrefix(r.URL.Host, "a.") {
			return nil, refusesConnection()
		}
		return says(201, ""), nil
	}), func(c *Config) {
		c.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	})
	ask := func(path string) { // as the filter of a kube-apiserver does for a client that may decide what is traced
		r := httptest.NewRequest("GET", path, nil)
		client := propagation.MapCarrier{"traceparent": clientsTrace}
		s.serve(r.WithContext(propagation.TraceContext{}.Extract(r.Context(), client)))
	}
	ask(jobsPath)
	if n := len(recorder.Ended()); n != 0 {
		t.Errorf("%d spans of a request that is served here", n)
	}
	ask(gadgetsPath)
	ended := recorder.Ended()
	if len(ended) != 3 {
		t.Fatalf("%d spans, want two attempts and the request", len(ended))
	}
	failed, answered, request := ended[0], ended[1], ended[2]
	for i, attempt := range []sdktrace.ReadOnlySpan{failed, answered} {
		if attempt.Parent().SpanID() != request.SpanContext().SpanID() {
			t.Errorf("attempt %d is not a child of the request", i+1)
		}
		c := attempt.SpanContext()
		if want := "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-01"; parents[i] != want {
			t.Errorf("attempt %d was sent with %q, want %q", i+1, parents[i], want)
		}
	}
	if got := request.Parent().SpanID().String(); got != "b7ad6b7169203331" || request.SpanContext().TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("the request is not part of its context's trace: parent %s", got)
	}
	if failed.Status().Code != codes.Error || answered.Status().Code == codes.Error {
		t.Errorf("statuses %v and %v, want an error and none", failed.Status(), answered.Status())
	}
	attributes := map[string]string{}
	for _, span := range ended {
		for _, a := range span.Attributes() {
			attributes[span.Name()+" "+string(a.Key)] += a.Value.String() + ";"
		}
	}
	want := map[string]string{
		"attempt at peer skewproof.peer":            "a;b;",
		"attempt at peer skewproof.attempt":         "1;2;",
		"attempt at peer skewproof.outcome":         "not-delivered;",
		"attempt at peer http.response.status_code": "201;",
		"proxy to peer http.request.method":         "GET;",
		"proxy to peer k8s.group":                   "new.k8s.io;",
		"proxy to peer k8s.version":                 "v1;",
		"proxy to peer k8s.resource":                "gadgets;",
		"proxy to peer k8s.subresource":             ";",
	}
	if diff := cmp.Diff(want, attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
}

func TestWithoutTracerTheClientsTraceIsPassedOn(t *testing.T) {
	var parent string
	s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
		parent = r.Header.Get("Traceparent")
		return says(200, ""), nil
	}))
	s.ask("GET", gadgetsPath, "", "Traceparent", clientsTrace)
	if parent != clientsTrace {
		t.Errorf("sent with %q, want the client's own", parent)
	}
}
