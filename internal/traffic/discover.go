package traffic

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/answer"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

// Discover fetches the discovery of one server alone: /api and /apis with profile=nopeer, as one
// document in that order. Its hash is the hash of both bodies joined. server must be a REST client
// of that server alone that is not recorded.
//
// The response does not say whether the server knows profile=nopeer. This makes no difference: all
// servers that merge discovery (from 1.35 on) know it, and the others always answer with their
// local view (k8s.io/apiserver/pkg/endpoints/discovery/aggregated/wrapper.go).
func Discover(ctx context.Context, server rest.Interface) (history.Document, error) {
	return discover(ctx, server, workload.AcceptNoPeer)
}

// DiscoverMerged is like Discover, but fetches the merged view that a server gives its clients.
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
