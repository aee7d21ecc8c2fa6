package binaries

import (
	"os"
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

// A binary built from a program that has changed since is not used, although the version of the
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
	other := strings.Replace(string(text), SourceHash(Ref{ClientGo, Version(version)}), strings.Repeat("0", 64), 1)
	if other == string(text) {
		t.Fatalf("the record has no hash of the source: %s", text)
	}
	if err := os.WriteFile(record, []byte(other), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), ClientGo, version); err == nil { // it cannot be built here
		t.Error("a binary built from another source is used")
	}
	if said := progressOf(s).String(); !strings.Contains(said, "was built from another source than this skewproof has") {
		t.Errorf("nobody was told:\n%s", said)
	}
}

func TestProgramsOfOtherVersionsAreRefused(t *testing.T) {
	for ref, want := range map[Ref]string{
		{ClientGo, "v0.1.0"}:                 "skewproof has a program for client-go of v0.",
		{KubeAPIServerReference, "v1.29.15"}: "there is no reference proxy for v1.29.15: it is for v1.30 and later",
	} {
		_, err := newStore(t, "").Get(t.Context(), ref.Component, string(ref.Version))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", ref, err)
		}
	}
}
