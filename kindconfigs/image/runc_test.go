package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// What .ci/runc is called with by containerd's shim, for a container and for an exec in one.
func TestRuncWithoutCapability(t *testing.T) {
	for _, needed := range []string{"bash", "jq"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("needs %s: %v", needed, err)
		}
	}
	type capabilities struct{ Bounding, Effective, Ambient []string }
	type process struct {
		Args         []string     `json:"args"`
		Capabilities capabilities `json:"capabilities"`
		OOMScoreAdj  int          `json:"oomScoreAdj"`
	}
	given := process{
		Args:         []string{"sh", "-c", "echo CAP_SYS_RESOURCE,"},
		Capabilities: capabilities{Bounding: []string{"CAP_CHOWN", "CAP_SYS_RESOURCE"}, Effective: []string{"CAP_SYS_RESOURCE"}, Ambient: []string{}},
		OOMScoreAdj:  -7,
	}
	dir := t.TempDir()
	write := func(name string, value any) {
		text, err := json.Marshal(value)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("config.json", map[string]process{"process": given})
	write("exec.json", given)
	run := func(args ...string) {
		cmd := exec.Command(filepath.Join("..", "..", ".ci", "runc"), args...)
		cmd.Env = append(os.Environ(), "RUNC=echo")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		want, err := exec.Command("echo", args...).Output()
		if err != nil || string(out) != string(want) {
			t.Errorf("runc was called with %q, want %q", out, want)
		}
	}
	check := func(name string, got process) {
		if !slices.Equal(got.Capabilities.Bounding, []string{"CAP_CHOWN"}) || len(got.Capabilities.Effective) != 0 {
			t.Errorf("%s asks for %+v", name, got.Capabilities)
		}
		if !slices.Equal(got.Args, given.Args) || got.OOMScoreAdj != -7 {
			t.Errorf("%s was changed elsewhere: %+v", name, got)
		}
	}

	run("--root", "/run/x", "create", "--bundle", dir, "id")
	var config map[string]process
	read(t, filepath.Join(dir, "config.json"), &config)
	check("config.json", config["process"])
	var untouched process
	read(t, filepath.Join(dir, "exec.json"), &untouched)
	if len(untouched.Capabilities.Bounding) != 2 {
		t.Error("it changed a file that it was not given")
	}

	run("--root", "/run/x", "exec", "--process", filepath.Join(dir, "exec.json"), "id")
	var executed process
	read(t, filepath.Join(dir, "exec.json"), &executed)
	check("exec.json", executed)

	run("--root", "/run/x", "delete", "--force", "id")
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
