package workload

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// No request of a sweep may change an object or make the server open a connection.
func TestASweepIsHarmless(t *testing.T) {
	for _, r := range Sweep(recordedDocuments(t)["new"], nil) {
		if r.Method() != http.MethodGet && !strings.Contains(r.Query, dryRun) {
			t.Errorf("%s is not a dry run", &r)
		}
		if r.Verb == "deletecollection" && !strings.Contains(r.Query, matchesNothing) {
			t.Errorf("%s selects objects", &r)
		}
		if about := r.Subresource != "" || slices.Contains([]string{"update", "patch", "delete"}, r.Verb); about && r.Name != absentName {
			t.Errorf("%s is about an object that may exist: %s", &r, r.Name)
		}
		if r.Subresource == "proxy" {
			t.Errorf("%s would be answered by what stands behind it", &r)
		}
	}
}

func TestASweepVisitsEveryVerb(t *testing.T) {
	doc := recordedDocuments(t)["new"]
	want := map[string]bool{}
	add := func(r history.Resource, subresource string, verbs []string) {
		for _, verb := range verbs {
			want[fmt.Sprint(r.GVR, "/", subresource, " ", verb)] = true
		}
	}
	for _, r := range doc.Resources {
		add(r, "", r.Verbs)
		for _, s := range r.Subresources {
			if s.Name != "proxy" {
				add(r, s.Name, s.Verbs)
			}
		}
	}
	for _, r := range Sweep(doc, nil) {
		key := fmt.Sprint(r.GVR, "/", r.Subresource, " ", r.Verb)
		if !want[key] {
			t.Errorf("%s is planned twice, or is not listed", key)
		}
		delete(want, key)
	}
	for key := range want {
		t.Errorf("%s is not planned", key)
	}
}
