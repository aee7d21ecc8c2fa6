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

func TestAnEpitaphTellsHowItEnded(t *testing.T) {
	for script, want := range map[string]string{
		"exit 0":                 "exit status 0; its log is empty",
		"echo 'no etcd'; exit 3": "exit status 3; last lines of its log:\nno etcd",
		"kill -KILL $$":          "signal: killed; its log is empty",
	} {
		p := shell(t, script)
		<-p.done
		if got := p.Epitaph(); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}
