package local

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

func TestAProcessThatEndsBeforeItIsReadySaysWhy(t *testing.T) {
	p := shell(t, "echo 'no such flag: --peer' >&2; exit 3")
	err := await(t.Context(), p, time.Minute, func(context.Context) error { return errors.New("refused") })
	if err == nil {
		t.Fatal("a process that has ended was ready")
	}
	for _, want := range []string{`kube-apiserver "a"`, "exit status 3", "no such flag: --peer"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func TestAwaitGivesUpWithTheLastAnswer(t *testing.T) {
	p := shell(t, "echo starting; sleep 1000")
	err := await(t.Context(), p, 300*time.Millisecond, func(context.Context) error { return errors.New("503 Service Unavailable") })
	if err == nil || !strings.Contains(err.Error(), "503 Service Unavailable") || !strings.Contains(err.Error(), "not ready after") {
		t.Fatalf("got %v, want an error with the last answer", err)
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	p := shell(t, "sleep 1000")
	ctx, cancel := context.WithCancelCause(t.Context())
	asked := errors.New("interrupted")
	err := await(ctx, p, time.Hour, func(context.Context) error {
		cancel(asked)
		return errors.New("refused")
	})
	if !errors.Is(err, asked) {
		t.Fatalf("got %v, want %v", err, asked)
	}
}

func TestPanicsAreFoundInTheLogOfTheirIncarnation(t *testing.T) {
	first := shell(t, `echo 'I1121 fine'; echo 'E1121 runtime.go:142] "Observed a panic" panic="nil map"'; echo 'I1121 fine again'`)
	<-first.done
	second, err := startProcess("second", "/bin/sh", []string{"-c", "echo 'fatal error: concurrent map writes'; echo 'panic: boom'"}, first.logPath, (*exec.Cmd).Start)
	if err != nil {
		t.Fatal(err)
	}
	<-second.done
	if got := panics(first.logPath, first.logFrom, second.logFrom); len(got) != 1 || !strings.Contains(got[0], "nil map") {
		t.Errorf("found %q in the first, want the one line about a panic", got)
	}
	if got := panics(second.logPath, second.logFrom, -1); len(got) != 2 {
		t.Errorf("found %q in the second, want both lines", got)
	}
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
