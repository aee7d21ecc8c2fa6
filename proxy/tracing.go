package proxy

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
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

// request begins the span of a forwarded request. Its parent is the span of the context: a
// kube-apiserver has decided which clients' requests are traced (k8s.io/apiserver, WithTracing).
func (t *tracer) request(r *http.Request, what Request) (context.Context, trace.Span) {
	if t == nil {
		return r.Context(), noSpan
	}
	return t.spans.Start(r.Context(), "proxy to peer", trace.WithAttributes(
		attribute.String("http.request.method", r.Method),
		attribute.String("k8s.group", what.Resource.Group),
		attribute.String("k8s.version", what.Resource.Version),
		attribute.String("k8s.resource", what.Resource.Resource),
		attribute.String("k8s.subresource", what.Resource.Subresource),
	))
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
