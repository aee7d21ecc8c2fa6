package traffic

import (
	"context"

	"github.com/skewproof/skewproof/internal/history"
)

// origin travels in the request's context, because one HTTP connection is shared by several client-go clients and by
// load and sweep: the transport could not tell otherwise who sent a request, and why.
type origin struct {
	client  string
	purpose history.Purpose
}

type originKey struct{}

func withOrigin(ctx context.Context, client string, purpose history.Purpose) context.Context {
	return context.WithValue(ctx, originKey{}, origin{client, purpose})
}

func originOf(ctx context.Context) origin {
	if o, ok := ctx.Value(originKey{}).(origin); ok {
		return o
	}
	return origin{ClientREST, history.PurposeLoad}
}
