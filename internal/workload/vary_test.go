package workload

import (
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestVaryChangesHowAndNotWhat(t *testing.T) {
	choices := rand.New(rand.NewPCG(1, 2))
	seen := map[string]int{}
	for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
		plain := Request{Verb: verb, GVR: history.GVR{Group: "apps", Version: "v1", Resource: "deployments"}, Name: "x", User: Admin}
		for range 500 {
			r := plain
			Vary(&r, 10, choices)
			if r.Verb != plain.Verb || r.GVR != plain.GVR || r.Name != plain.Name || r.User != plain.User || r.Subresource != "" {
				t.Fatalf("%v became %v", plain, r)
			}
			if _, err := url.ParseQuery(r.Query); err != nil {
				t.Errorf("%s: query %q: %v", verb, r.Query, err)
			}
			if r.Body != "" && (!json.Valid([]byte(r.Body)) || len(r.Body) < LargeBody) {
				t.Errorf("%s: a body of %d bytes that is not a large object", verb, len(r.Body))
			}
			for what, is := range map[string]bool{
				"query": r.Query != "", "HTTP/1.1": r.HTTP1, "slow": r.Slow, "large": r.Body != "", "accept": r.Accept != "", "plain": r == plain,
			} {
				if is {
					seen[what]++
				}
			}
		}
	}
	for _, what := range []string{"query", "HTTP/1.1", "slow", "large", "accept", "plain"} {
		if seen[what] == 0 {
			t.Errorf("%s: never", what)
		}
	}
}

// A request that already has options must not change.
func TestVaryKeepsRequestsWithOptions(t *testing.T) {
	choices := rand.New(rand.NewPCG(3, 4))
	for _, r := range []Request{
		{Verb: "list", Query: "limit=20"}, {Verb: history.VerbDiscovery, Path: "/apis"}, {Verb: "watch", Upgrade: true},
		{Verb: history.VerbTable},
	} {
		for range 200 {
			same := r
			if Vary(&same, 2, choices); same != r {
				t.Fatalf("%v became %+v", r, same)
			}
		}
	}
}
