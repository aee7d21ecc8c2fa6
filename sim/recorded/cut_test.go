package recorded

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// TestCutOfNothing: cut would lose a field that it does not know from every document.
func TestCutOfNothing(t *testing.T) {
	paths, err := fs.Glob(documents, "documents/*.json")
	if err != nil || len(paths) < 2*(len(Names())-len(equal)) {
		t.Fatalf("documents %q (%v), want two of each of %q", paths, err, Names())
	}
	defaults, err := fs.Glob(documents, "documents/default/*.json")
	if err != nil || len(defaults) == 0 {
		t.Fatalf("no documents of defaults (%v)", err)
	}
	paths = append(paths, defaults...)
	for _, path := range paths {
		body, err := documents.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := cut(body, func(history.GVR) bool { return true })
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("%s: %d bytes of %d are left (%v)", path, len(got), len(body), err)
		}
	}
}

func TestCutRefuses(t *testing.T) {
	for body, want := range map[string]string{
		"":                            "cut a discovery document",
		`{"items":[{"metadata":[]}]}`: "metadata of a group",
		`{"items":[{"versions":[]}]}`: "metadata of a group",
		`{"items":[{"metadata":{"name":"a"},"versions":[{"version":"v1","resources":[7]}]}]}`: "a resource of a/v1",
	} {
		if _, err := cut([]byte(body), func(history.GVR) bool { return true }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", body, err, want)
		}
	}
}
