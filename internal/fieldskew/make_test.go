package fieldskew

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/internal/history"
)

// refusing is a server that wants a field beside another one, and knows no other rule.
type refusing struct{ asked atomic.Int64 }

func (r *refusing) Send(_ context.Context, q Request) (Answer, error) {
	r.asked.Add(1)
	if source, ok := get(q.Object, []string{"spec", "items", "0", "source"}); ok && q.DryRun {
		if _, named := get(source, []string{"name"}); !named {
			return Answer{Code: 422, Refusal: metav1.Status{Message: "no name", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Type: metav1.CauseTypeFieldValueRequired, Field: "spec.items[0].source.name"},
			}}}}, nil
		}
	}
	object, _ := q.Object.(tree)
	return Answer{Code: 201, Object: object}, nil
}

func TestObject(t *testing.T) {
	schemas := Schemas{}
	if err := schemas.add([]byte(`{"components": {"schemas": {
		"Thing": {"type": "object", "properties": {"spec": {"$ref": "#/components/schemas/Spec"}},
			"x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "Thing"}]},
		"Spec": {"type": "object", "properties": {"items": {"type": "array", "items": {"$ref": "#/components/schemas/Item"}}}},
		"Item": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "source": {"$ref": "#/components/schemas/Source"}}},
		"Source": {"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}, "name": {"type": "string"}}}}}}`)); err != nil {
		t.Fatal(err)
	}
	server := &refusing{}
	sides := [2]Side{{Server: server, Schemas: schemas}, {Server: server, Schemas: schemas}}
	thing := Resource{GVR: history.GVR{Group: "apps", Version: "v1", Resource: "things"}, Kind: "Thing", Namespaced: true}
	for path, want := range map[string]string{
		"":                     `{"apiVersion":"apps/v1","kind":"Thing","metadata":{"name":"skewproof"}}`,
		"spec.items[*].source": `{"apiVersion":"apps/v1","kind":"Thing","metadata":{"name":"skewproof"},"spec":{"items":[{"id":"a","source":{"name":"a","path":"a"}}]}}`,
	} {
		got, err := Object(t.Context(), sides, thing, path)
		if body, _ := json.Marshal(got); err != nil || string(body) != want {
			t.Errorf("%q: %s, %v; want %s", path, body, err, want)
		}
	}
	if server.asked.Load() == 0 {
		t.Error("no server was asked")
	}
}
