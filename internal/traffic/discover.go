package traffic

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/answer"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

// Discover fetches what one server serves by itself: /api and /apis with profile=nopeer, as one
// document in that order. Its hash is that of both bodies joined. Pass the REST client of a client
// that is not recorded, connected to that server alone.
//
// The response does not say whether the server knows profile=nopeer, and need not: all that merge
// discovery (1.35 on) know it, and others answer with their local view anyway
// (k8s.io/apiserver/pkg/endpoints/discovery/aggregated/wrapper.go).
func Discover(ctx context.Context, server rest.Interface) (history.Document, error) {
	return discover(ctx, server, workload.AcceptNoPeer)
}

// DiscoverMerged fetches what a server tells its clients: as Discover does, but the merged view.
func DiscoverMerged(ctx context.Context, server rest.Interface) (history.Document, error) {
	return discover(ctx, server, workload.AcceptAggregated)
}

func discover(ctx context.Context, server rest.Interface, accept string) (history.Document, error) {
	var bodies [2][]byte
	for i, path := range []string{"/api", "/apis"} {
		body, err := server.Get().AbsPath(path).SetHeader("Accept", accept).MaxRetries(0).Do(ctx).Raw()
		if err != nil {
			return history.Document{}, fmt.Errorf("fetch discovery at %s: %w", path, err)
		}
		bodies[i] = body
	}
	all, err := answer.ParseRoots(bodies[0], bodies[1])
	if err != nil {
		return history.Document{}, fmt.Errorf("fetch %w", err)
	}
	return all, nil
}
