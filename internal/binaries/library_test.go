package binaries

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/libraries"
)

// newestClientGo is the newest version that there is a program for.
func newestClientGo(t *testing.T) string {
	t.Helper()
	all := libraries.Versions(string(ClientGo))
	if len(all) == 0 {
		t.Fatal("there is no program for client-go")
	}
	return all[len(all)-1]
}

// What was built from a program that has changed since is not used, although the version of the
// library is the same.
func TestAProgramThatChangedIsBuiltAgain(t *testing.T) {
	s := newStore(t, "")
	version := newestClientGo(t)
	fill(t, s, ClientGo, version)
	if b, err := s.Get(t.Context(), ClientGo, version); err != nil || b.Origin != OriginCache {
		t.Fatalf("the same source: got %+v, %v", b, err)
	}
	record := filepath.Join(entryDir(s.Dir, Ref{ClientGo, Version(version)}), originFile)
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(text), sourceHash(Ref{ClientGo, Version(version)}), strings.Repeat("0", 64), 1)
	if other == string(text) {
		t.Fatalf("the record has no hash of the source: %s", text)
	}
	if err := os.WriteFile(record, []byte(other), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), ClientGo, version); err == nil { // it cannot be built here
		t.Error("what was built from another source is used")
	}
	if said := progressOf(s).String(); !strings.Contains(said, "was built from another source than this skewproof has") {
		t.Errorf("nobody was told:\n%s", said)
	}
}

func TestLibrariesOfOtherVersionsAreRefused(t *testing.T) {
	s := newStore(t, "")
	_, err := s.Get(t.Context(), ClientGo, "v0.1.0")
	if err == nil || !strings.Contains(err.Error(), "skewproof has a program for client-go of v0.") {
		t.Errorf("got %v", err)
	}
}

// The programs compile with the oldest and the newest version of their library. They are other
// modules: nothing else here looks at them.
func TestProgramsOfLibrariesCompile(t *testing.T) {
	for _, c := range []Component{ClientGo, ControllerRuntime} {
		versions := libraries.Versions(string(c))
		for _, version := range []string{versions[0], versions[len(versions)-1]} {
			t.Run(string(c)+" "+version, func(t *testing.T) {
				dir := t.TempDir()
				if err := writeLibraryProgram(dir, Ref{c, Version(version)}); err != nil {
					t.Fatal(err)
				}
				list := exec.Command("go", "list", "-mod=readonly", "-deps", "./...")
				list.Dir, list.Env = dir, append(list.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
				if out, err := list.CombinedOutput(); err != nil && strings.Contains(string(out), "module lookup disabled by GOPROXY=off") {
					t.Skipf("the modules of %s %s are not in the module cache; 'skewproof binaries get --component %s %s' downloads them", c, version, c, version)
				}
				vet := exec.Command("go", "vet", "-mod=readonly", "-trimpath", ".") // with what a build has left in the cache
				vet.Dir, vet.Env = dir, list.Env
				if out, err := vet.CombinedOutput(); err != nil {
					t.Errorf("go vet: %v\n%s", err, out)
				}
			})
		}
	}
}
