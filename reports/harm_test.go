package reports

import (
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

// The page and the JUnit file describe harm by a controller with the objects as they were in etcd.
func TestHarmIsShownWithItsObjects(t *testing.T) {
	r := small()
	e := &r.Invariants[0].Evidence[0]
	*e = newEvidence(invariant.Evidence{Sentence: "It was deleted.", Count: 1, Objects: []history.Object{
		{APIVersion: "v1", Kind: "Namespace", Name: "n", Revision: 7, At: at(3), Deleting: true, Finalizers: []string{"kubernetes"},
			Conditions: []string{"NamespaceContentRemaining"}},
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: "x", Revision: 8, At: at(4), Gone: true, Finalizers: []string{"f"}},
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: "y", Revision: 9, At: at(5)},
	}})
	page := strings.Join(strings.Fields(text(render(t, r))), " ")
	junit := parseJUnit(t, r).Cases[0].Failure.Text
	if want := "Namespace n deleting → ConfigMap n/x removed ConfigMap n/y exists"; !strings.Contains(page, want) {
		t.Errorf("the page does not draw %q", want)
	}
	for _, want := range []string{
		"being deleted, finalizers: kubernetes, says: NamespaceContentRemaining", "(revision 8): ConfigMap n/x: removed\n",
		"(revision 9): ConfigMap n/y: exists\n",
	} {
		if !strings.Contains(junit, want) {
			t.Errorf("JUnit's file does not say %q:\n%s", want, junit)
		}
	}
	for _, want := range []string{"Namespace n at 3.000 s (revision 7): being deleted", "ConfigMap n/x at 4.000 s (revision 8): removed"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// The page leads from the controller over the wrong answer to the consequence.
func TestTheAnswerThatMisledIsShown(t *testing.T) {
	const user = "system:serviceaccount:kube-system:namespace-controller"
	bundles := history.GVR{Group: "certificates.k8s.io", Version: "v1", Resource: "clustertrustbundles"}
	shown := func(m invariant.Misled) string {
		r := small()
		m.Controller, m.Server, m.At, m.ID, m.Verb, m.Lacks = user, "b", at(3), "id-1", "get", bundles
		r.Invariants[0].Evidence[0] = newEvidence(invariant.Evidence{Sentence: "It stayed.", Cause: "Secret n/y stayed", Count: 1, Misled: &m})
		return strings.Join(strings.Fields(text(render(t, r))), " ")
	}
	document := shown(invariant.Misled{Path: "/apis", Status: 200, Agent: "kcm/v1", Basis: "b does not serve it itself"})
	for _, want := range []string{
		"namespace-controller → b → 200 without certificates.k8s.io/v1/clustertrustbundles → Secret n/y stayed",
		"get /apis at 3.0 s, Audit-ID id-1, kcm/v1", "does not serve it itself",
	} {
		if !strings.Contains(document, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if want, page := "→ b → 404 for certificates.k8s.io/v1/clustertrustbundles → Secret", shown(invariant.Misled{Path: "/apis/certificates.k8s.io/v1", Status: 404}); !strings.Contains(page, want) {
		t.Errorf("the page does not say %q", want)
	}
}
