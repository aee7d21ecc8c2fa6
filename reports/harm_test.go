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
		{APIVersion: "v1", Kind: "Namespace", Name: "n", Revision: 7, At: at(3), Deleting: true, Finalizers: []string{"kubernetes"}, Conditions: []string{"NamespaceContentRemaining"}},
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: "x", Revision: 8, At: at(4), Gone: true, Finalizers: []string{"f"}},
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: "y", Revision: 9, At: at(5)},
	}})
	page := strings.Join(strings.Fields(text(render(t, r))), " ")
	junit := parseJUnit(t, r).TestSuites[0].TestCases[0].Failure.Description
	if want := "Namespace n deleting → ConfigMap n/x removed ConfigMap n/y exists"; !strings.Contains(page, want) {
		t.Errorf("the page does not draw %q", want)
	}
	for _, want := range []string{
		"being deleted, finalizers: kubernetes, says: NamespaceContentRemaining", "(revision 8): ConfigMap n/x: removed\n", "(revision 9): ConfigMap n/y: exists\n",
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
