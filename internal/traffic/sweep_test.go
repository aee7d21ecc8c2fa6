package traffic

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

func TestSweepAsksWhatWasPlanned(t *testing.T) {
	record := newLedger()
	clients := connectAll(t, record, sharedCertificate(t, 2)...)
	doc := history.Document{Resources: []history.Resource{{
		GVR: history.GVR{Group: "apps", Version: "v1", Resource: "deployments"}, Namespaced: true,
		Verbs:        []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch", "levitate"},
		Subresources: []history.Subresource{{Name: "scale", Verbs: []string{"get"}}, {Name: "bind", Verbs: []string{"create"}}},
	}, {
		GVR: history.GVR{Version: "v1", Resource: "bindings"}, Namespaced: true, Verbs: []string{"create"},
	}}}
	swept, err := Sweep(t.Context(), clients, doc, SweepOptions{})
	if err != nil || swept != (Swept{Resources: 4, Requests: 22}) {
		t.Errorf("swept %+v (%v), want 4 resources in 22 requests", swept, err)
	}
	const in = "/apis/apps/v1/namespaces/skewproof/deployments"
	want := []string{
		"create /api/v1/namespaces/skewproof/bindings?dryRun=All",
		"create " + in + "/skewproof-absent/bind?dryRun=All",
		"create " + in + "?dryRun=All",
		"delete " + in + "/skewproof-absent?dryRun=All",
		"deletecollection " + in + "?dryRun=All&labelSelector=skewproof.invalid%2Fsweep%3Dmatches-nothing",
		"get " + in + "/skewproof-absent",
		"get " + in + "/skewproof-absent/scale",
		"list /apis/apps/v1/deployments?limit=1",
		"patch " + in + "/skewproof-absent?dryRun=All",
		"update " + in + "/skewproof-absent?dryRun=All",
		"watch /apis/apps/v1/deployments?labelSelector=skewproof.invalid%2Fsweep%3Dmatches-nothing&timeoutSeconds=1&watch=true",
	}
	for _, server := range []string{"a", "b"} {
		var got []string
		for _, op := range record.all() {
			if op.Server == server {
				got = append(got, op.Verb+" "+op.Path)
			}
			if op.Purpose != history.PurposeSweep || op.Missing != history.MissingResource {
				t.Errorf("%s is recorded as %q, missing %q", op.Path, op.Purpose, op.Missing)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("server %q was asked\n%s\nwant\n%s", server, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestSweepOfSomeVerbs(t *testing.T) {
	record := newLedger()
	clients := connectAll(t, record, sharedCertificate(t, 2)...)
	swept, err := Sweep(t.Context(), clients, recordedDocuments(t)["old"],
		SweepOptions{Verbs: []string{"get", "list"}, QPS: 5000})
	if err != nil || swept.Requests != len(record.all()) || swept.Requests == 0 {
		t.Errorf("swept %+v (%v) and recorded %d operations", swept, err, len(record.all()))
	}
	for _, op := range record.all() {
		if op.Verb != "get" && op.Verb != "list" {
			t.Fatalf("server %q was asked to %s", op.Server, op.Verb)
		}
	}
}

func TestSweepEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var asked atomic.Int32
	server := newAPIServer(t, func(_ http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 3 {
			cancel()
		}
		<-r.Context().Done()
	})
	record := newLedger()
	swept, err := Sweep(ctx, connectAll(t, record, server), recordedDocuments(t)["new"], SweepOptions{Verbs: []string{"get"}})
	if err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("error %v, want one that says it was canceled", err)
	}
	if swept.Requests < 3 || swept.Requests > 20 {
		t.Errorf("%d requests were sent after the third one stopped the sweep", swept.Requests)
	}
}

func TestReadOnlySweepOnlyReads(t *testing.T) {
	record := newLedger()
	clients := connectAll(t, record, newAPIServer(t, notFound))
	doc := history.Document{Resources: []history.Resource{configMaps()}}
	if _, err := Sweep(t.Context(), clients, doc, SweepOptions{Verbs: workload.ReadVerbs}); err != nil {
		t.Fatal(err)
	}
	if len(record.all()) != len(workload.ReadVerbs) {
		t.Errorf("%d requests, want one for each of %v", len(record.all()), workload.ReadVerbs)
	}
	for _, op := range record.all() {
		if !slices.Contains(workload.ReadVerbs, op.Verb) {
			t.Errorf("%s %s does not read", op.Verb, op.Path)
		}
	}
}
