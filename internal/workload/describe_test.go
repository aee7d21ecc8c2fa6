package workload

import (
	"net/http"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestDescribe(t *testing.T) {
	deployments := history.GVR{Group: "apps", Version: "v1", Resource: "deployments"}
	for _, tt := range []struct {
		name, method, path, accept string
		want                       history.Operation
	}{
		{"list", "GET", "/apis/apps/v1/deployments?limit=1", "", history.Operation{Verb: "list", GVR: deployments}},
		{"table", "GET", "/apis/apps/v1/deployments", acceptTable, history.Operation{Verb: "table", GVR: deployments}},
		{"protobuf", "GET", "/apis/apps/v1/deployments", acceptProtobuf, history.Operation{Verb: "list", GVR: deployments, Accept: acceptProtobuf}},
		{"get asked for as a table is a get", "GET", "/apis/apps/v1/namespaces/n/deployments/x", acceptTable,
			history.Operation{Verb: "get", GVR: deployments, Namespace: "n", Name: "x"}},
		{"watch", "GET", "/apis/apps/v1/deployments?watch=true", "", history.Operation{Verb: "watch", GVR: deployments}},
		{"create", "POST", "/apis/apps/v1/namespaces/n/deployments", "", history.Operation{Verb: "create", GVR: deployments, Namespace: "n"}},
		{"patch of a subresource", "PATCH", "/apis/apps/v1/namespaces/n/deployments/x/status", "",
			history.Operation{Verb: "patch", GVR: deployments, Namespace: "n", Name: "x", Subresource: "status"}},
		{"delete of a collection", "DELETE", "/apis/apps/v1/namespaces/n/deployments", "",
			history.Operation{Verb: "deletecollection", GVR: deployments, Namespace: "n"}},
		{"core group", "PUT", "/api/v1/nodes/x", "", history.Operation{Verb: "update", GVR: history.GVR{Version: "v1", Resource: "nodes"}, Name: "x"}},
		{"merged discovery", "GET", "/apis", AcceptAggregated, history.Operation{Verb: "discovery"}},
		{"local discovery is no merged discovery", "GET", "/apis", AcceptNoPeer, history.Operation{Verb: "nopeer"}},
		{"an older form of aggregated discovery", "GET", "/apis", acceptBeta, history.Operation{Verb: "legacy"}},
		{"the index of OpenAPI", "GET", "/openapi/v3", "application/json", history.Operation{Verb: "openapi"}},
		{"a part of OpenAPI", "GET", "/openapi/v3/apis/apps/v1", "application/json", history.Operation{Verb: "openapi"}},
		{"the core group's discovery", "GET", "/api", AcceptAggregated, history.Operation{Verb: "discovery"}},
		{"nor is the legacy form", "GET", "/apis", "application/json", history.Operation{Verb: "legacy"}},
		{"nor a version's document", "GET", "/apis/apps/v1", AcceptAggregated, history.Operation{Verb: "get", GVR: history.GVR{Group: "apps", Version: "v1"}}},
		{"nor a group's", "GET", "/apis/apps/", "", history.Operation{Verb: "get", GVR: history.GVR{Group: "apps"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tt.method, "https://127.0.0.1"+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", tt.accept)
			tt.want.Path = tt.path
			if got := Describe(req); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}
