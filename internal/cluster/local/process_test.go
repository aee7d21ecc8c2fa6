package local

import (
	"os/exec"
	"path/filepath"
	"testing"
)

func shell(t *testing.T, script string) *process {
	t.Helper()
	p, err := startProcess("kube-apiserver \"a\"", "/bin/sh", []string{"-c", script}, filepath.Join(t.TempDir(), "a.log"), (*exec.Cmd).Start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.signal(9)
		<-p.done
	})
	return p
}

func TestTailIsOfThisIncarnationOnly(t *testing.T) {
	first := shell(t, "echo first")
	<-first.done
	second, err := startProcess("second", "/bin/sh", []string{"-c", "echo second"}, first.logPath, (*exec.Cmd).Start)
	if err != nil {
		t.Fatal(err)
	}
	<-second.done
	if got := second.tail(8); got != "second" {
		t.Fatalf("tail is %q, want the second process's line only", got)
	}
}
