package sim

import (
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim/recorded"
)

// kube-apiserver looks up the object of a binding or an eviction, and does not create it
// (k8s.io/kubernetes, pkg/registry/core/pod/storage).
func TestASubresourceIsCreatedOfAnObjectThatIsThere(t *testing.T) {
	setup := only(t, proxy.Reference())
	setup.Version = recorded.Get
	c := three(soak(time.Minute))
	var want []int
	for i, ask := range []struct {
		verb, subresource, name string
		status                  int
	}{
		{"create", "binding", "absent", 404},
		{"get", "", "absent", 404},
		{"create", "", "there", 201},
		{"create", "", "there", 409},
		{"create", "binding", "there", 201},
		{"create", "eviction", "there", 201},
		{"get", "", "there", 200},
	} {
		c.Requests = append(c.Requests, Request{
			After:   time.Duration(i+1) * time.Second,
			Server:  "b",
			Request: workload.Request{Verb: ask.verb, GVR: history.GVR{Version: "v1", Resource: "pods"}, Subresource: ask.subresource, Name: ask.name},
		})
		want = append(want, ask.status)
	}
	operations := run(t, setup, c, 1).History.Operations
	if len(operations) != len(want) {
		t.Fatalf("%d operations, want %d", len(operations), len(want))
	}
	for i, op := range operations {
		if op.Status != want[i] || op.Status == 404 && op.Missing != history.MissingObject {
			t.Errorf("%s of %s: %d %s, want %d", op.Verb, op.Path, op.Status, op.Missing, want[i])
		}
	}
}
