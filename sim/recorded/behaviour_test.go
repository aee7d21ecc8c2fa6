package recorded

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// Every recorded authorizer was asked about what its own release serves, and a node may read a
// secret of its pods only. Controllers publish the authority in every namespace.
func TestRecordedBehaviour(t *testing.T) {
	paths, err := fs.Glob(documents, "documents/behaviour/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d recordings, error %v", len(paths), err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		b, of, err := BehaviourOf(name)
		if err != nil || of != name {
			t.Fatalf("%s: error %v, of %q", name, err, of)
		}
		release, err := Get(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range Kinds(release) {
			if !b.WasAsked(ParseKind(kind)) {
				t.Errorf("%s: nobody asked about %s", name, kind)
			}
		}
		secrets := Kind{Resource: "secrets"}
		if got := b.Allowed(Node, secrets); !slices.Contains(got, "get") || b.May[Node][secrets.String()] != "" || b.Related[secrets.String()] == "" {
			t.Errorf("%s: a node may %q all secrets, and %q those of its pods", name, b.May[Node][secrets.String()], b.Related[secrets.String()])
		}
		for _, s := range []Subject{ServiceAccount, User} {
			if got := b.Allowed(s, secrets); len(got) > 0 || len(b.May[s]) == 0 {
				t.Errorf("%s: %s may %q secrets, and %v", name, s, got, b.May[s])
			}
		}
		roots, ok := b.Creates(history.GVR{Version: "v1", Resource: "configmaps"})
		if !ok || !slices.Contains(roots.Names, "kube-system/kube-root-ca.crt") || len(roots.By) == 0 {
			t.Errorf("%s: controllers create %+v", name, roots)
		}
	}
}

func TestBehaviourOfTheUsersOwn(t *testing.T) {
	dir := t.TempDir()
	if err := WriteBehaviour(dir, "v1.99.3", []byte(`{"created": [], "asked": {"apps": "deployments deployments/scale"}, "may": {}, "related": {}}`)); err != nil {
		t.Fatal(err)
	}
	b, of, err := BehaviourOf("v1.99.4", dir)
	if err != nil || of != "v1.99.3" || !b.WasAsked(ParseKind("deployments.apps/scale")) || b.WasAsked(ParseKind("deployments")) {
		t.Errorf("error %v, of %q, %+v", err, of, b)
	}
	if _, _, err := BehaviourOf("v1.98.0", dir); !errors.Is(err, ErrNoBehaviour) {
		t.Errorf("a release that is not recorded: error %v", err)
	}
	for _, body := range []string{"", "{}", "[]", `{"asked": {"": "pods"}, "surprise": 1}`} {
		if err := WriteBehaviour(dir, "v1.99.5", []byte(body)); err == nil {
			t.Errorf("%q is written", body)
		}
	}
}
