package binaries

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/libraries"
)

func newestClientNode(t *testing.T) Ref {
	t.Helper()
	all := libraries.Versions(string(ClientNode))
	if len(all) == 0 {
		t.Fatal("there is no program for client-node")
	}
	return Ref{ClientNode, Version(all[len(all)-1])}
}

// putPrograms makes a PATH of programs that are shell scripts.
func putPrograms(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	if len(scripts) == 0 {
		t.Setenv("PATH", dir)
	}
}

func TestWithoutNodeItIsSaid(t *testing.T) {
	putPrograms(t, nil)
	s, ref := newStore(t, ""), newestClientNode(t)
	_, err := s.Get(t.Context(), ref.Component, string(ref.Version))
	if !errors.Is(err, ErrNoNode) || !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "install Node.js") {
		t.Errorf("got %v", err)
	}
}

// The packages are got by their lock file, and no script of theirs is run.
func TestAProgramForNodeIsOneFile(t *testing.T) {
	told := filepath.Join(t.TempDir(), "told")
	putPrograms(t, map[string]string{
		"npm": `echo "npm $*" >>` + told + `; test -f package.json && test -f package-lock.json && test -f main.mjs`,
		"node": `for a in "$@"; do case $a in --outfile=*) out=${a#--outfile=};; esac; done
printf '#!/bin/sh\necho client-node ` + string(newestClientNode(t).Version) + `\n' >"$out"`,
	})
	s, ref := newStore(t, ""), newestClientNode(t)
	b, err := s.Get(t.Context(), ref.Component, string(ref.Version))
	if err != nil {
		t.Fatal(err)
	}
	commands, err := os.ReadFile(told)
	if err != nil || strings.TrimSpace(string(commands)) != "npm ci --ignore-scripts --no-audit --no-fund" {
		t.Errorf("%q, %v", commands, err)
	}
	if scope, err := os.ReadFile(filepath.Join(filepath.Dir(b.Path), "package.json")); err != nil || string(scope) != nodeScope {
		t.Errorf("%q, %v", scope, err)
	}
	if b.Origin != OriginBuild || !strings.Contains(b.How, "@kubernetes/client-node@") {
		t.Errorf("%+v", b)
	}
	if again, err := s.Get(t.Context(), ref.Component, string(ref.Version)); err != nil || again.Origin != OriginCache {
		t.Errorf("again: %+v, %v", again, err)
	}
}

func TestNpmThatFailsIsQuoted(t *testing.T) {
	putPrograms(t, map[string]string{"npm": "echo 'npm error: no such package' >&2; exit 1", "node": "exit 0"})
	s, ref := newStore(t, ""), newestClientNode(t)
	_, err := s.Get(t.Context(), ref.Component, string(ref.Version))
	if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrNoNode) || !strings.Contains(err.Error(), "npm error: no such package") {
		t.Errorf("got %v", err)
	}
}

// The really installed program answers like the other clients. Without Node.js or the registry, the
// test is skipped with the reason.
func TestTheRealProgramForNode(t *testing.T) {
	ref := newestClientNode(t)
	s := newStore(t, "")
	b, err := s.Get(t.Context(), ref.Component, string(ref.Version))
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(b.Path, "--context", "none", "no-such-operation").CombinedOutput()
	if err == nil || !strings.Contains(string(out), `error: there is no operation "no-such-operation"`) {
		t.Errorf("%v: %s", err, out)
	}
}
