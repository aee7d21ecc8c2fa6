package workload

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/history"
)

func TestDescribe(t *testing.T) {
	deployments := history.GVR{Group: "apps", Version: "v1", Resource: "deployments"}
	for _, tt := range []struct {
		name, method, path, accept string
		want                       history.Operation
	}{
		{"list", "GET", "/apis/apps/v1/deployments?limit=1", "",
			history.Operation{Sent: &history.Sent{Verb: "list", GVR: deployments}, Received: &history.Received{}}},
		{"table", "GET", "/apis/apps/v1/deployments", acceptTable,
			history.Operation{Sent: &history.Sent{Verb: "table", GVR: deployments}, Received: &history.Received{}}},
		{"protobuf", "GET", "/apis/apps/v1/deployments", acceptProtobuf,
			history.Operation{Sent: &history.Sent{Verb: "list", GVR: deployments, Accept: acceptProtobuf}, Received: &history.Received{}}},
		{"get asked for as a table is a get", "GET", "/apis/apps/v1/namespaces/n/deployments/x", acceptTable,
			history.Operation{Sent: &history.Sent{Verb: "get", GVR: deployments, Namespace: "n", Name: "x"}, Received: &history.Received{}}},
		{"watch", "GET", "/apis/apps/v1/deployments?watch=true", "",
			history.Operation{Sent: &history.Sent{Verb: "watch", GVR: deployments}, Received: &history.Received{}}},
		{"create", "POST", "/apis/apps/v1/namespaces/n/deployments", "",
			history.Operation{Sent: &history.Sent{Verb: "create", GVR: deployments, Namespace: "n"}, Received: &history.Received{}}},
		{"patch of a subresource", "PATCH", "/apis/apps/v1/namespaces/n/deployments/x/status", "",
			history.Operation{Sent: &history.Sent{Verb: "patch", GVR: deployments, Namespace: "n", Name: "x", Subresource: "status"},
				Received: &history.Received{}}},
		{"delete of a collection", "DELETE", "/apis/apps/v1/namespaces/n/deployments", "",
			history.Operation{Sent: &history.Sent{Verb: "deletecollection", GVR: deployments, Namespace: "n"}, Received: &history.Received{}}},
		{"core group", "PUT", "/api/v1/nodes/x", "", history.Operation{Sent: &history.Sent{Verb: "update",
			GVR: history.GVR{Version: "v1", Resource: "nodes"}, Name: "x"}, Received: &history.Received{}}},
		{"merged discovery", "GET", "/apis", AcceptAggregated,
			history.Operation{Sent: &history.Sent{Verb: "discovery"}, Received: &history.Received{}}},
		{"local discovery is not merged discovery", "GET", "/apis", AcceptNoPeer,
			history.Operation{Sent: &history.Sent{Verb: "nopeer"}, Received: &history.Received{}}},
		{"an older form of aggregated discovery", "GET", "/apis", acceptBeta,
			history.Operation{Sent: &history.Sent{Verb: "legacy"}, Received: &history.Received{}}},
		{"the index of OpenAPI", "GET", "/openapi/v3", "application/json",
			history.Operation{Sent: &history.Sent{Verb: "openapi"}, Received: &history.Received{}}},
		{"a part of OpenAPI", "GET", "/openapi/v3/apis/apps/v1", "application/json",
			history.Operation{Sent: &history.Sent{Verb: "openapi"}, Received: &history.Received{}}},
		{"the core group's discovery", "GET", "/api", AcceptAggregated,
			history.Operation{Sent: &history.Sent{Verb: "discovery"}, Received: &history.Received{}}},
		{"nor is the legacy form", "GET", "/apis", "application/json",
			history.Operation{Sent: &history.Sent{Verb: "legacy"}, Received: &history.Received{}}},
		{"nor a version's document", "GET", "/apis/apps/v1", AcceptAggregated,
			history.Operation{Sent: &history.Sent{Verb: "get", GVR: history.GVR{Group: "apps", Version: "v1"}}, Received: &history.Received{}}},
		{"nor a group's", "GET", "/apis/apps/", "",
			history.Operation{Sent: &history.Sent{Verb: "get", GVR: history.GVR{Group: "apps"}}, Received: &history.Received{}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tt.method, "https://127.0.0.1"+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", tt.accept)
			tt.want.Path = tt.path
			if diff := cmp.Diff(tt.want, Describe(req)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
