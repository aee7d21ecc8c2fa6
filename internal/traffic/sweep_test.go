package traffic

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// TestSweepPlanIsHarmless: nothing in a plan can change an object or open a connection on behalf of the server.
func TestSweepPlanIsHarmless(t *testing.T) {
	for _, v := range planSweep(recordedDocuments(t)["new"], nil) {
		r := v.request
		what := fmt.Sprintf("%s %s/%s", v.verb, v.resource, v.subresource)
		if r.method != "" && r.query["dryRun"] != "All" {
			t.Errorf("%s is no dry run", what)
		}
		if v.verb == "deletecollection" && r.query["labelSelector"] != matchesNothing {
			t.Errorf("%s selects objects", what)
		}
		if (v.subresource != "" || r.method == http.MethodPut || r.method == http.MethodPatch) && !strings.Contains(r.path, "/"+absentName) {
			t.Errorf("%s is about an object that may exist: %s", what, r.path)
		}
		if v.verb == "delete" && !strings.HasSuffix(r.path, "/"+absentName) {
			t.Errorf("%s is about an object that may exist: %s", what, r.path)
		}
		if v.subresource == "proxy" {
			t.Errorf("%s would be answered by what stands behind it", what)
		}
	}
}

func TestSweepPlanVisitsEveryVerb(t *testing.T) {
	doc := recordedDocuments(t)["new"]
	want := map[string]bool{}
	for _, r := range doc.Resources {
		for _, verb := range r.Verbs {
			want[fmt.Sprint(r.GVR, " ", verb)] = true
		}
		for _, s := range r.Subresources {
			for _, verb := range s.Verbs {
				if s.Name != "proxy" {
					want[fmt.Sprint(r.GVR, "/", s.Name, " ", verb)] = true
				}
			}
		}
	}
	for _, v := range planSweep(doc, nil) {
		key := fmt.Sprint(v.resource, " ", v.verb)
		if v.subresource != "" {
			key = fmt.Sprint(v.resource, "/", v.subresource, " ", v.verb)
		}
		if !want[key] {
			t.Errorf("%s is planned twice, or is not listed", key)
		}
		delete(want, key)
	}
	for key := range want {
		t.Errorf("%s is not planned", key)
	}
}

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
		"create " + in + "/skewproof-sweep-absent/bind?dryRun=All",
		"create " + in + "?dryRun=All",
		"delete " + in + "/skewproof-sweep-absent?dryRun=All",
		"deletecollection " + in + "?dryRun=All&labelSelector=skewproof.invalid%2Fsweep%3Dmatches-nothing",
		"get " + in + "/skewproof-sweep-absent",
		"get " + in + "/skewproof-sweep-absent/scale",
		"list /apis/apps/v1/deployments?limit=1",
		"patch " + in + "/skewproof-sweep-absent?dryRun=All",
		"update " + in + "/skewproof-sweep-absent?dryRun=All",
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

func TestSweepOfSomeVerbsOnOneServer(t *testing.T) {
	record := newLedger()
	clients := connectAll(t, record, sharedCertificate(t, 2)...)
	swept, err := Sweep(t.Context(), clients, recordedDocuments(t)["old"],
		SweepOptions{Servers: []string{"b"}, Verbs: []string{"get", "list"}, QPS: 5000, Concurrency: 2})
	if err != nil || swept.Requests != len(record.all()) || swept.Requests == 0 {
		t.Errorf("swept %+v (%v) and recorded %d operations", swept, err, len(record.all()))
	}
	for _, op := range record.all() {
		if op.Server != "b" || op.Verb != "get" && op.Verb != "list" {
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
	if _, err := Sweep(t.Context(), connectAll(t, record, server), history.Document{}, SweepOptions{Servers: []string{"z"}}); err == nil {
		t.Error("a server that does not exist was swept")
	}
}
