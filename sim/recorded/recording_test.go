package recorded

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy"
)

// A release serves by default only what it serves with every API on.
func TestDefaultsArePartOfTheRelease(t *testing.T) {
	for _, name := range Names() {
		r, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range r.Default.Document.Resources {
			if r.All.Find(resource.GVR) == nil {
				t.Errorf("%s: %s is on by default, and not with every API on", name, resource.GVR)
			}
			if strings.Contains(resource.Version, "alpha") {
				t.Errorf("%s: %s is on by default, and alpha", name, resource.GVR)
			}
		}
		if len(r.Default.Document.Resources) >= len(r.All.Document.Resources) || !bytes.Equal(r.Default.Bodies[proxy.RootCore], r.All.Bodies[proxy.RootCore]) {
			t.Errorf("%s: defaults are all, or differ in the core group", name)
		}
	}
}

// What is written is found again, before what this repository has.
func TestARecordingIsFoundInADirectory(t *testing.T) {
	newest, err := Find("v1.37.1")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := Write(dir, "v1.99.0", newest.All.Bodies, newest.Default.Bodies); err != nil {
		t.Fatal(err)
	}
	got, err := Find("v1.99.0", filepath.Join(dir, "missing"), dir)
	if err != nil {
		t.Fatal(err)
	}
	if got.All.Document.Hash != newest.All.Document.Hash || got.Default.Document.Hash != newest.Default.Document.Hash || got.All.Name != "v1.99.0" {
		t.Errorf("found %s, %s", got.All.Name, got.All.Document.Hash)
	}
	small := newest.All.Small([]history.GVR{{Version: "v1", Resource: "pods"}})
	if err := Write(dir, "v1.36.3", small.Bodies, small.Bodies); err != nil {
		t.Fatal(err)
	}
	if got, err := Find("v1.36.3", dir); err != nil || len(got.All.Document.Resources) != 1 {
		t.Errorf("the user's own recording is not preferred: %v", err)
	}
}

func TestWhatIsNoRecordingIsRefused(t *testing.T) {
	for _, name := range []string{"", "1.37.1", "latest", "../v1.37.1", "v1.37.1/x", "v1.30.14+without.batch.v1"} {
		if _, err := Find(name); err == nil || !strings.Contains(err.Error(), "want one like v1.37.1") {
			t.Errorf("%q: error %v", name, err)
		}
	}
	if _, err := Find("v1.99.0"); !errors.Is(err, ErrNotRecorded) || !strings.Contains(err.Error(), "v1.36.3") {
		t.Errorf("an unknown release: error %v", err)
	}
	dir := t.TempDir()
	junk := [2][]byte{[]byte(`{"items":[]}`), []byte(`{"items":[]}`)}
	if err := Write(dir, "v1.99.0", junk, junk); err == nil {
		t.Error("a recording without resources is written")
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) > 0 {
		t.Errorf("it left %q", left)
	}
	for _, file := range []string{"v1.99.0-api.json", "v1.99.0-apis.json"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Find("v1.99.0", dir); err == nil || errors.Is(err, ErrNotRecorded) {
		t.Errorf("a broken recording: error %v", err)
	}
	if slices.Contains(Names(), "v1.99.0") {
		t.Error("a recording of the user's own became one of this repository")
	}
}

// What is equal is stored once, and a release that has all files of its own is not in the table.
func TestNothingIsStoredTwice(t *testing.T) {
	for name, as := range equal {
		if equal[as] != "" {
			t.Errorf("%s is as %s, whose files are not all stored", name, as)
		}
		missing := 0
		for _, pattern := range []string{"%s-api.json", "%s-apis.json", "default/%s-api.json", "default/%s-apis.json", "flags/%s.json"} {
			stored, err := documents.ReadFile("documents/" + fmt.Sprintf(pattern, name))
			other, of := fs.ReadFile(own{}, fmt.Sprintf(pattern, as))
			if of != nil {
				t.Error(of)
			}
			if err != nil {
				missing++
			} else if bytes.Equal(bytes.ReplaceAll(stored, []byte(name), []byte(as)), other) {
				t.Errorf("%s is stored, and equal to that of %s", fmt.Sprintf(pattern, name), as)
			}
		}
		r, err := Find(name)
		if err != nil || r.All.Name != name || missing == 0 {
			t.Errorf("%s: %d files are not stored; error %v", name, missing, err)
		}
	}
}
