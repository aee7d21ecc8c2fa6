package proxy

import (
	"context"
	"net/http"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apiserver/pkg/authentication/user"
)

// noSpan records nothing.
var noSpan = trace.SpanFromContext(context.Background())

// tracer makes spans. A nil tracer makes no spans and does not change trace headers.
type tracer struct {
	spans  trace.Tracer
	header propagation.TraceContext
}

func newTracer(p trace.TracerProvider) *tracer {
	if p == nil {
		return nil
	}
	return &tracer{spans: p.Tracer("github.com/skewproof/skewproof/proxy")}
}

// request begins the span of a forwarded request. Its parent is the span of the context. If there
// is none, it is the span of the client, if the user may decide which requests are traced.
// Otherwise the span of the client is only linked (like upstream: k8s.io/apiserver, WithTracing).
func (t *tracer) request(r *http.Request, u user.Info, what Request) (context.Context, trace.Span) {
	ctx := r.Context()
	if t == nil {
		return ctx, noSpan
	}
	var options []trace.SpanStartOption
	if !trace.SpanContextFromContext(ctx).IsValid() {
		client := t.header.Extract(ctx, propagation.HeaderCarrier(r.Header))
		switch of := trace.SpanContextFromContext(client); {
		case mayTrace(u):
			ctx = client
		case of.IsValid():
			options = append(options, trace.WithLinks(trace.Link{SpanContext: of}))
		}
	}
	return t.spans.Start(ctx, "proxy to peer", append(options, trace.WithAttributes(
		attribute.String("http.request.method", r.Method),
		attribute.String("k8s.group", what.Resource.Group),
		attribute.String("k8s.version", what.Resource.Version),
		attribute.String("k8s.resource", what.Resource.Resource),
		attribute.String("k8s.subresource", what.Resource.Subresource),
	))...)
}

// mayTrace reports whether a user may decide which requests are traced.
func mayTrace(u user.Info) bool {
	return slices.ContainsFunc(u.GetGroups(), func(group string) bool {
		return group == user.SystemPrivilegedGroup || group == user.MonitoringGroup
	})
}

// attempt begins the span of one attempt, and returns a copy of header that names it as the parent.
func (t *tracer) attempt(ctx context.Context, peer ServerID, number int, header http.Header) (context.Context, trace.Span, http.Header) {
	if t == nil {
		return ctx, noSpan, header
	}
	ctx, span := t.spans.Start(ctx, "attempt at peer", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("skewproof.peer", string(peer)),
		attribute.Int("skewproof.attempt", number),
	))
	own := make(http.Header, len(header)+1)
	for name, values := range header { // in any order
		own[name] = values
	}
	t.header.Inject(ctx, propagation.HeaderCarrier(own))
	return ctx, span, own
}

func endAttempt(span trace.Span, a AttemptResult, trouble string) {
	if a.Answered {
		span.SetAttributes(attribute.Int("http.response.status_code", a.Code))
	} else {
		span.SetAttributes(attribute.String("skewproof.outcome", a.Outcome.String()))
		span.SetStatus(codes.Error, trouble)
	}
	span.End()
}
