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

// Every recorded authorizer was asked about what its own release serves, and a node may read
// secrets, and create none. Controllers publish the authority in every namespace.
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
		secrets, services := Kind{Resource: "secrets"}, Kind{Resource: "services"}
		if may := b.NodeMay(secrets); !slices.Contains(may, "get") || slices.Contains(may, "create") || slices.Contains(b.NodeMay(services), "create") {
			t.Errorf("%s: a node may %q secrets, and %q services", name, may, b.NodeMay(services))
		}
		roots := b.Creates(history.GVR{Version: "v1", Resource: "configmaps"})
		if !slices.Contains(roots.Names, "kube-system/kube-root-ca.crt") || len(roots.By) == 0 {
			t.Errorf("%s: controllers create %+v", name, roots)
		}
	}
}

func TestBehaviourOfTheUsersOwn(t *testing.T) {
	dir := t.TempDir()
	if err := WriteBehaviour(dir, "v1.99.3", []byte(`{"created": [], "asked": "deployments.apps deployments.apps/scale", "nodes": {}}`)); err != nil {
		t.Fatal(err)
	}
	b, of, err := BehaviourOf("v1.99.4", dir)
	if err != nil || of != "v1.99.3" || !b.WasAsked(ParseKind("deployments.apps/scale")) || b.WasAsked(ParseKind("deployments")) {
		t.Errorf("error %v, of %q, %+v", err, of, b)
	}
	if _, _, err := BehaviourOf("v1.98.0", dir); !errors.Is(err, ErrNoBehaviour) {
		t.Errorf("a release that is not recorded: error %v", err)
	}
	for _, body := range []string{"", "{}", "[]", `{"asked": "pods", "surprise": 1}`} {
		if err := WriteBehaviour(dir, "v1.99.5", []byte(body)); err == nil {
			t.Errorf("%q is written", body)
		}
	}
}
