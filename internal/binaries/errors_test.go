package binaries

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

// These are real outputs of the go command.
func TestCauseOf(t *testing.T) {
	for _, tc := range []struct {
		name string
		said string
		is   error  // nil: only the text counts
		want string // "": no cause is known
	}{
		{"unknown to the module proxy", "k8s.io/kubernetes@v1.99.0: invalid version: unknown revision v1.99.0", errNoRelease, "no such release"},
		{"404", "reading https://proxy.example/k8s.io/kubernetes/@v/v1.99.0.info: 404 Not Found", errNoRelease, "no such release"},
		{"403", "reading https://proxy.example/k8s.io/kubernetes/@v/v1.99.0.info: 403 Forbidden\n\tserver response: This module version is not available.", nil, "does not give it out"},
		{"offline", "Get \"https://proxy.example/x\": dial tcp: lookup proxy.example: no such host", errModuleProxy, "cannot be reached"},
		{"forbidden to look", "module lookup disabled by GOPROXY=off", errModuleProxy, "cannot be reached"},
		{"direct, offline", "unrecognized import path \"k8s.io/kubernetes\": https fetch: Get \"https://k8s.io/kubernetes?go-get=1\": dial tcp: lookup k8s.io: no such host", nil, "does not have it"},
		{"disk full", "write /x: no space left on device", syscall.ENOSPC, "no space left"},
		{"disk full while offline", "dial tcp: refused\nwrite /x: no space left on device", syscall.ENOSPC, "no space left"},
		{"tampered with", "verifying module: checksum mismatch\n\nSECURITY ERROR", errChecksum, "WRONG CHECKSUM"},
		{"old Go", "go: go.mod requires go >= 1.27.0 (running go 1.26.8; GOTOOLCHAIN=local)", nil, "GOTOOLCHAIN=auto"},
		{"out of memory", "k8s.io/api/core/v1: /usr/lib/go/pkg/tool/linux_amd64/compile: signal: killed", nil, "memory ran out"},
		{"compile error", "x.go:3:1: undefined: y", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := causeOf(tc.said)
			if tc.want == "" {
				if got != nil {
					t.Errorf("got %v", got)
				}
				return
			}
			if got == nil || !strings.Contains(got.Error(), tc.want) || tc.is != nil && !errors.Is(got, tc.is) {
				t.Errorf("got %v, want %q", got, tc.want)
			}
		})
	}
}

// If the disk is full during a build, the error says so, and which disk it is.
func TestDiskFullDuringBuild(t *testing.T) {
	err := buildError(Ref{KubeAPIServer, testVersion}, &goError{verb: "build", err: errors.New("exit status 1"), output: "write: no space left on device"})
	if !diskFull(err) {
		t.Errorf("got %v", err)
	}
}

func TestGoErrorTail(t *testing.T) {
	err := &goError{verb: "build", err: errors.New("exit status 1"), output: strings.Repeat("early\n", 50) + strings.Repeat("late\n", tailLines)}
	if text := err.Error(); strings.Contains(text, "early") || strings.Count(text, "late") != tailLines {
		t.Errorf("got %s", text)
	}
}
