package traffic

import (
	"context"
	"net/http"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

func TestDescribe(t *testing.T) {
	deployments := history.GVR{Group: "apps", Version: "v1", Resource: "deployments"}
	table := (&workload.Request{Verb: history.VerbTable}).Header().Get("Accept")
	protobuf := (&workload.Request{Client: workload.ClientTyped}).Header().Get("Accept")
	const beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
	for _, tt := range []struct {
		name, method, path, accept string
		want                       history.Operation
	}{
		{"list", "GET", "/apis/apps/v1/deployments?limit=1", "", history.Operation{Verb: "list", GVR: deployments}},
		{"table", "GET", "/apis/apps/v1/deployments", table, history.Operation{Verb: "table", GVR: deployments}},
		{"protobuf", "GET", "/apis/apps/v1/deployments", protobuf, history.Operation{Verb: "list", GVR: deployments, Accept: protobuf}},
		{"get asked for as a table is a get", "GET", "/apis/apps/v1/namespaces/n/deployments/x", table,
			history.Operation{Verb: "get", GVR: deployments, Namespace: "n", Name: "x"}},
		{"watch", "GET", "/apis/apps/v1/deployments?watch=true", "", history.Operation{Verb: "watch", GVR: deployments}},
		{"create", "POST", "/apis/apps/v1/namespaces/n/deployments", "", history.Operation{Verb: "create", GVR: deployments, Namespace: "n"}},
		{"patch of a subresource", "PATCH", "/apis/apps/v1/namespaces/n/deployments/x/status", "",
			history.Operation{Verb: "patch", GVR: deployments, Namespace: "n", Name: "x", Subresource: "status"}},
		{"delete of a collection", "DELETE", "/apis/apps/v1/namespaces/n/deployments", "",
			history.Operation{Verb: "deletecollection", GVR: deployments, Namespace: "n"}},
		{"core group", "PUT", "/api/v1/nodes/x", "", history.Operation{Verb: "update", GVR: history.GVR{Version: "v1", Resource: "nodes"}, Name: "x"}},
		{"merged discovery", "GET", "/apis", workload.AcceptAggregated, history.Operation{Verb: "discovery"}},
		{"local discovery is no merged discovery", "GET", "/apis", workload.AcceptNoPeer, history.Operation{Verb: "nopeer"}},
		{"an older form of aggregated discovery", "GET", "/apis", beta, history.Operation{Verb: "legacy"}},
		{"the index of OpenAPI", "GET", "/openapi/v3", "application/json", history.Operation{Verb: "openapi"}},
		{"a part of OpenAPI", "GET", "/openapi/v3/apis/apps/v1", "application/json", history.Operation{Verb: "openapi"}},
		{"the core group's discovery", "GET", "/api", workload.AcceptAggregated, history.Operation{Verb: "discovery"}},
		{"nor is the legacy form", "GET", "/apis", "application/json", history.Operation{Verb: "legacy"}},
		{"nor a version's document", "GET", "/apis/apps/v1", workload.AcceptAggregated, history.Operation{Verb: "get", GVR: history.GVR{Group: "apps", Version: "v1"}}},
		{"nor a group's", "GET", "/apis/apps/", "", history.Operation{Verb: "get", GVR: history.GVR{Group: "apps"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := context.WithValue(t.Context(), attemptKey{}, &attempt{purpose: "p", request: workload.Request{Client: "c"}})
			req, err := http.NewRequestWithContext(ctx, tt.method, "https://127.0.0.1"+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", tt.accept)
			tt.want.Client, tt.want.Purpose, tt.want.Path = "c", "p", tt.path
			if got := describe(req); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}
