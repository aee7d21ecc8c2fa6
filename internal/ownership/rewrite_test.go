package ownership

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/scenario"
)

// A rewrite writes back the object that it has read, with one more annotation. Every patch only
// adds content.
func TestOwnersAreUpdatedAndPatchedInEveryWay(t *testing.T) {
	c, s, cluster := newObjects(t, documents(bundles))
	o := scenario.Objects{Name: "x", Dependents: 1}
	must(t, c.Create(t.Context(), o))
	cluster.asked = nil
	must(t, c.Rewrite(t.Context(), o, "b"))
	if diff := cmp.Diff([]string{"client of b"}, cluster.asked); diff != "" {
		t.Errorf("servers asked (-want +got):\n%s", diff)
	}
	const path = "/apis/certificates.k8s.io/v1/clustertrustbundles/x-owner"
	want := []string{
		"PATCH " + path + ` application/merge-patch+json {"metadata":{"annotations":{"skewproof.dev/rewritten":"merge"}}}`,
		"PATCH " + path + ` application/json-patch+json [{"op":"add","path":"/metadata/annotations/skewproof.dev~1rewritten","value":"json"}]`,
		"PATCH " + path + ` application/strategic-merge-patch+json {"metadata":{"annotations":{"skewproof.dev/rewritten":"strategic"}}}`,
		"PATCH " + path + ` application/apply-patch+yaml {"apiVersion":"certificates.k8s.io/v1","kind":"ClusterTrustBundle","metadata":{"name":"x-owner","annotations":{"skewproof.dev/rewritten":"apply"}}}`,
	}
	if diff := cmp.Diff(want, s.written[1:5]); diff != "" {
		t.Errorf("patches (-want +got):\n%s", diff)
	}
	bundle := fmt.Sprintf("%q", s.objects[path]["spec"].(map[string]any)["trustBundle"])
	for _, part := range []string{"PUT " + path + " application/json", `"skewproof.dev/rewritten":"update"`, strings.ReplaceAll(bundle, "\\u0026", "&")} {
		if !strings.Contains(s.written[0], part) {
			t.Errorf("the update %q lacks %q", s.written[0], part)
		}
	}
	if len(s.written) != 10 || !strings.HasPrefix(s.written[5], "PUT /api/v1/namespaces/x/configmaps/x-owner ") {
		t.Errorf("want five writes of each of two owners: %q", s.written)
	}
}

func TestAServerThatRefusesToRewriteIsNoError(t *testing.T) {
	c, s, _ := newObjects(t, documents(bundles))
	o := scenario.Objects{Name: "x", Dependents: 1}
	must(t, c.Create(t.Context(), o))
	s.remove("/")
	if err := c.Rewrite(t.Context(), o, "b"); err != nil || len(s.written) != 0 {
		t.Errorf("error %v, written %q", err, s.written)
	}
}
