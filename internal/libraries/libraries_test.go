package libraries

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// modules are the modules of the libraries.
var modules = map[string]string{"client-go": "k8s.io/client-go", "controller-runtime": "sigs.k8s.io/controller-runtime"}

// Every version of a program requires that very version of its library, and has the sums of it.
func TestEveryVersionIsWhole(t *testing.T) {
	for library, module := range modules {
		if len(Versions(library)) == 0 {
			t.Errorf("%s has no versions", library)
		}
		for _, version := range Versions(library) {
			files, err := Source(library, version)
			if err != nil {
				t.Fatal(err)
			}
			content := map[string]string{}
			for _, f := range files {
				content[f.Name] = string(f.Content)
			}
			mod, err := modfile.Parse("go.mod", []byte(content["go.mod"]), nil)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == module && r.Mod.Version == version }) {
				t.Errorf("the go.mod of %s %s does not require it", library, version)
			}
			if !strings.Contains(content["go.sum"], module+" "+version+" h1:") || !strings.Contains(content["main.go"], "package main") {
				t.Errorf("the source of %s %s lacks the sum of its module, or its main.go", library, version)
			}
			for name := range content {
				if strings.Contains(name, version) {
					t.Errorf("the source of %s %s has %s", library, version, name)
				}
			}
		}
	}
}

// The lock file of a program for Node.js has a hash for every package, and names no registry. npm
// uses the registry of its configuration.
func TestEveryVersionForNodeIsLocked(t *testing.T) {
	versions := Versions("client-node")
	if len(versions) == 0 {
		t.Error("client-node has no versions")
	}
	for _, version := range versions {
		files, err := Source("client-node", version)
		if err != nil {
			t.Fatal(err)
		}
		content := map[string]string{}
		for _, f := range files {
			content[f.Name] = string(f.Content)
		}
		var wants struct{ Dependencies, DevDependencies map[string]string }
		var lock struct {
			Packages map[string]struct{ Version, Resolved, Integrity string }
		}
		if err := errors.Join(json.Unmarshal([]byte(content["package.json"]), &wants), json.Unmarshal([]byte(content["package-lock.json"]), &lock)); err != nil {
			t.Fatal(err)
		}
		exact := strings.TrimPrefix(version, "v")
		if wants.Dependencies["@kubernetes/client-node"] != exact || lock.Packages["node_modules/@kubernetes/client-node"].Version != exact {
			t.Errorf("%s: package.json or its lock file asks for another version", version)
		}
		for name, p := range lock.Packages {
			if name != "" && (p.Integrity == "" || p.Resolved != "") {
				t.Errorf("%s: %s has the integrity %q, and names a registry: %q", version, name, p.Integrity, p.Resolved)
			}
		}
		if len(lock.Packages) < 2 || content["main.mjs"] == "" {
			t.Errorf("%s: the source lacks packages, or its main.mjs", version)
		}
	}
}

func TestUnknownVersionsAreRefused(t *testing.T) {
	for _, c := range [][2]string{{"client-go", "v0.1.0"}, {"client-go", ""}, {"no-such", "v0.1.0"}, {"..", "v0.1.0"}} {
		if files, err := Source(c[0], c[1]); err == nil || files != nil || !strings.Contains(err.Error(), "skewproof has a program for") {
			t.Errorf("%q: %d files, error %v", c, len(files), err)
		}
	}
}

// A change of any file changes the hash.
func TestHash(t *testing.T) {
	files := []File{{"a", []byte("1")}, {"b", []byte("2")}}
	first := Hash(files)
	for _, other := range [][]File{{{"a", []byte("1")}}, {{"a", []byte("1b")}, {"b", []byte("2")}}, {{"a", []byte("1")}, {"c", []byte("2")}}, nil} {
		if Hash(other) == first {
			t.Errorf("the hash of %v is that of %v", other, files)
		}
	}
	if Hash(slices.Clone(files)) != first {
		t.Error("the hash of the same files differs")
	}
}
