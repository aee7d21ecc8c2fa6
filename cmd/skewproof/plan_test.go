package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim/recorded"
)

func TestPlanIsWrittenInEveryForm(t *testing.T) {
	for form, want := range map[string]string{"text": "WHAT TO DO", "wide": "PROTECTION BY THE", "markdown": "## What to do", "html": "<h2 id=", "json": `"checklist"`} {
		out, err := call(t, "plan", "--from", "v1.36.3", "--to", "v1.37.1", "-o", form, "--documents", t.TempDir())
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("-o %s: error %v, want %q in\n%s", form, err, want, out)
		}
	}
}

// The flags of the command line decide about the protection.
func TestPlanTakesTheFlagsOfTheServers(t *testing.T) {
	out, err := call(t, "plan", "--from", "v1.36.3", "--to", "v1.37.1", "--peer-ca-file", "/my/ca.crt", "-o", "json", "--documents", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var p reports.UpgradePlan
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatal(err)
	}
	if c := p.Protection[0]; !c.Ways[0].Protected || !c.Ways[1].Protected || !strings.Contains(c.Configuration, "/my/ca.crt") {
		t.Errorf("%+v", c)
	}
}

// A plan for servers that do not start ends with 1, whatever its form, and rehearses nothing.
func TestPlanForServersThatDoNotStart(t *testing.T) {
	for _, form := range []string{"text", "json"} {
		out, err := call(t, "plan", "--from", "v1.35.4", "--to", "v1.36.3", "--peer-ca-file", "/my/ca.crt", "--rehearse", "-o", form,
			"--documents", t.TempDir())
		var exit *exitError
		if !errors.As(err, &exit) || exit.code != exitFail || !strings.Contains(out, "refuses to start") || !strings.Contains(out, "Correct the flags") {
			t.Errorf("-o %s: error %v:\n%s", form, err, out)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{nil, "a plan needs --from and --to"},
		{[]string{"--from", "v1.36.3"}, "a plan needs --from and --to"},
		{[]string{"--from", "v1.36.3", "--to", "v1.37.1", "-o", "pdf"}, "want text, wide, markdown, html or json"},
		{[]string{"--from", "v1.37.1", "--to", "v1.36.3"}, "is older than"},
		{[]string{"--from", "v1.36.3", "--to", "v1.99.0"}, "skewproof plan --record v1.99.0"},
		{[]string{"--from", "v1.36.3", "--record", "v1.37.1"}, "without --record"},
		{[]string{"--from", "v1.36.3", "--to", "v1.37.1", "--out", "x"}, "--rehearse"},
		{[]string{"--record", "latest"}, "latest"},
		{[]string{"--record", "v1.37.1", "--config", "kubeadm.yaml"}, "without --record"},
		{[]string{"--record-fields", "--from", "v1.36.3"}, "give --from and --to"},
		{[]string{"--record-fields", "--from", "v1.36.3", "--to", "v1.37.1", "-o", "json"}, "no flags of a plan"},
		{[]string{"--record-fields", "--from", "v1.37.1", "--to", "v1.36.3"}, "is older than"},
		{[]string{"--record-fields", "--from", "latest", "--to", "v1.36.3"}, "latest"},
		{[]string{"--from", "v1.36.3", "--to", "v1.37.1", "--feature-gates", "UnknownVersionInteroperabilityProxy"},
			`--feature-gates: "UnknownVersionInteroperabilityProxy" is no list`},
		{[]string{"--config", "plan.go", "--to", "v1.37.1"}, "read the configuration plan.go"},
		{[]string{"--config", ".", "--to", "v1.37.1"}, "it is a directory"},
		{[]string{"--config", "a", "--flags-from", "b"}, "give one of them"},
	} {
		_, err := call(t, append([]string{"plan", "--documents", t.TempDir()}, c.words...)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", c.words, err, c.want)
		}
	}
}

// The files of the servers say their version and their flags. A server that does not start is no
// usage error. Flags of the command line follow those of the file.
func TestPlanReadsFiles(t *testing.T) {
	kubeadm := filepath.Join(t.TempDir(), "kubeadm.yaml")
	write := func(gates string) {
		text := "apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.3+k3s1\n" +
			"apiServer:\n  extraArgs:\n    feature-gates: " + gates + "\n    peer-ca-file: /ca.crt\n"
		if err := os.WriteFile(kubeadm, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		gates string
		words []string
		code  int
		want  string
	}{
		{"AllAlpha=false", nil, exitPass, "in both directions"},
		{"AllAlpha=false", nil, exitPass, "v1.36.3+k3s1 is a version of a distribution. The plan is for v1.36.3"},
		{"AllAlpha=false", nil, exitPass, "kubeadm v1.37 does not read kubeadm.k8s.io/v1beta3"},
		{"SidecarContainers=true", nil, exitFail, "kube-apiserver refuses to start: `unrecognized feature gate: SidecarContainers`"},
		{"AllBeta=false", nil, exitFail, "--peer-ca-file requires UnknownVersionInteroperabilityProxy feature to be turned on"},
		{"AllBeta=false", []string{"--feature-gates", "UnknownVersionInteroperabilityProxy=True,APIServerIdentity=1"}, exitPass, "in both directions"},
		{"nothing", nil, exitUsage, "did you mean"},
	} {
		write(c.gates)
		out, err := call(t, append([]string{"plan", "--config", kubeadm, "--to", "v1.37.1", "-o", "markdown", "--documents", t.TempDir()}, c.words...)...)
		var exit *exitError
		code := exitPass
		if errors.As(err, &exit) {
			code = exit.code
		}
		if code != c.code || !strings.Contains(out+fmt.Sprint(err), c.want) {
			t.Errorf("%s %q: exit code %d (%v), want %d and %q in\n%s", c.gates, c.words, code, err, c.code, c.want, out)
		}
	}
}

// kubeadm resolves a label, such as stable-1.36, when it runs. So the user says what it was.
func TestPlanDoesNotGuessALabel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeadm.yaml")
	text := "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: stable-1.36\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, "plan", "--config", file, "--to", "v1.37.1"); err == nil || !strings.Contains(err.Error(), `"stable-1.36", which names no release`) {
		t.Errorf("without --from: got %v", err)
	}
	if _, err := call(t, "plan", "--config", file, "--from", "v1.36.3", "--to", "v1.37.1"); err != nil {
		t.Errorf("with --from: %v", err)
	}
}

// Recordings of the user's own are read without a flag.
func TestPlanReadsTheUsersRecordings(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir, err := recordings()
	if err != nil {
		t.Fatal(err)
	}
	newest, err := recorded.Find("v1.37.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := recorded.Write(dir, "v1.99.0", newest.All.Bodies, newest.Default.Bodies); err != nil {
		t.Fatal(err)
	}
	out, err := call(t, "plan", "--from", "v1.37.1", "--to", "v1.99.0")
	if err != nil || !strings.Contains(out, "No finding was checked with v1.99.0") || !strings.Contains(out, "does not support this upgrade in one step") {
		t.Errorf("error %v:\n%s", err, out)
	}
}
