package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/suite"
)

// call runs a command and returns its standard output.
func call(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, progress bytes.Buffer
	root := newRoot()
	root.SetArgs(joinKnown(args))
	root.SetOut(&out)
	root.SetErr(&progress)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestDryRunShowsEverythingAndTouchesNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	out, err := call(t, "run", "rolling-upgrade", "--dry-run", "--servers", "4", "--subject", "none")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"replace d by v1.37.1", "etcd\n", "kube-apiserver a, v1.36.3, on host a", "kube-apiserver d, v1.37.1, on host d",
		"--feature-gates=UnknownVersionInteroperabilityProxy=false", `"action": "replace"`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the dry run does not show %q", want)
		}
	}
	left, err := os.ReadDir(".")
	if err != nil || len(left) > 0 {
		t.Errorf("it left %v, error %v", left, err)
	}
}

// If a step starts a server with its own flags, the dry run shows these flags too.
func TestDryRunShowsWhatIsSetUp(t *testing.T) {
	out, err := call(t, "run", "emulated-upgrade", "--dry-run", "--from", "v1.35.4", "--to", "v1.37.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"replace c by v1.37.1, emulating 1.35", "kube-apiserver c, v1.37.1, on host c (198.18.0.12/30)\n", "kube-apiserver c, v1.37.1, emulating 1.35, on host c (198.18.0.12/30)\n",
	} {
		if strings.Count(out, want) != 1 {
			t.Errorf("the dry run shows %q %d times, want once:\n%s", want, strings.Count(out, want), out)
		}
	}
	if got := strings.Count(out, "--emulated-version=1.35"); got != 3 {
		t.Errorf("the dry run has --emulated-version=1.35 %d times, want once for each server", got)
	}
	if out, err = call(t, "run", "emulated-upgrade", "--dry-run", "--subject", "reference", "--from", "v1.30.14", "--to", "v1.37.1"); codeOf(t, err) != exitUsage || !strings.Contains(err.Error(), "emulates 1.34 to 1.37") {
		t.Errorf("seven versions at once: %v\n%s", err, out)
	}
}

func TestDryRunShowsTheReference(t *testing.T) {
	out, err := call(t, "run", "reference-rollout", "--dry-run", "--subject", "reference")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\nkube-apiserver c, v1.36.3, its proxy that of its release, on host c", "\nkube-apiserver-reference c, v1.36.3, on host c",
		"--mixed-version-proxy-policy=reference",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the dry run does not show %q", want)
		}
	}
}

// The command line in a report must repeat the run, whatever the run is. The test parses it with
// the program's own flags.
func TestTheReproducingCommandIsTheRun(t *testing.T) {
	own, err := binaries.NewRef(binaries.KubeAPIServer, "v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []run.Spec{
		{
			Scenario: "peer-partition", Backend: "local", Subject: "none", From: "v1.35.4", To: "v1.36.3", Etcd: "v3.6.9", Servers: 5, QPS: 99.5,
			Seed: new(uint64(7)), Strict: true, Binaries: binaries.Overrides{own: "/opt/patched/kube-apiserver"},
		},
		{Scenario: "quiet", Backend: "sim", Subject: "alpha", From: "v1.35.4", To: "v1.36.3", Servers: 90, QPS: 30, Seed: new(uint64(0)), OnlyReads: true},
		{
			Scenario: "quiet", Backend: "existing", Kubeconfig: "/my own/config", Contexts: []string{"a,b", `c"d`, "-x", "y z"},
			QPS: 20, Strict: true,
		},
		{Scenario: "quiet", Backend: "kind", RuntimeConfig: new(""), APIServerFlags: []string{"v=4", "feature-gates=A=true,B=false"}},
		{Scenario: "quiet", Backend: "local", RuntimeConfig: new("api/ga=true,batch/v1=false")},
		{Scenario: "quiet", Backend: "local"},
	} {
		words := want.Words()
		if len(words) < 2 || words[0] != "run" || words[1] != want.Scenario {
			t.Fatalf("it begins with %q", words)
		}
		var got run.Spec
		flags := newFlags(&got)
		if err := flags.Parse(words[2:]); err != nil {
			t.Fatal(err)
		}
		got.Scenario = words[1]
		if len(got.Binaries) == 0 {
			got.Binaries = nil
		}
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%q gives\n%+v, want\n%+v", words, got, want)
		}
	}
}

// newFlags are the flags of 'skewproof run'.
func newFlags(s *run.Spec) *pflag.FlagSet {
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	registerRun(flags, s)
	suite.RegisterExisting(flags, s)
	flags.BoolVar(&s.OnlyReads, "only-reads", false, "")
	return flags
}

func TestADryRunShowsWhatServersAreFirstStartedWith(t *testing.T) {
	usual, err := call(t, "run", "quiet", "--dry-run")
	if err != nil || !strings.Contains(usual, "--peer-advertise-ip=") {
		t.Fatalf("error %v:\n%s", err, usual)
	}
	out, err := call(t, "run", "advertised-address-fallback", "--dry-run")
	if commands, _, _ := strings.Cut(out, "The plan as data"); err != nil || strings.Contains(commands, "--peer-advertise-ip=") {
		t.Errorf("error %v, and an address is advertised:\n%s", err, out)
	}
}

// A binary that the user gives is not fetched.
func TestBinariesOfTheUsersOwnAreNotGot(t *testing.T) {
	own := filepath.Join(t.TempDir(), "kube-apiserver")
	if err := os.WriteFile(own, []byte("#!/bin/sh\necho Kubernetes v1.36.3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv(binaries.OverrideEnv, "kube-apiserver@v1.36.3="+own)
	out, err := call(t, "binaries", "get", "v1.36.3")
	if err != nil || strings.TrimSpace(out) != own {
		t.Errorf("it got %q, error %v", out, err)
	}
}
