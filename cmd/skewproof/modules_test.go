package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// skewproof has the module versions of the Kubernetes release that it is built with, as long as
// this is the default of --to. Then the first build on a machine compiles only once what skewproof
// and that kube-apiserver have in common, which saves a minute and a half of CPU time.
func TestModulesAreThoseOfKubernetes(t *testing.T) {
	list := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
		if err != nil {
			t.Fatalf("go list %s: %v", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out))
	}
	path := list("-m", "-f", "{{.GoMod}}", "k8s.io/apiserver") // its go.mod has the versions of its release
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kubernetes, err := modfile.ParseLax(path, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]string{}
	for _, r := range kubernetes.Require {
		wanted[r.Mod.Path] = r.Mod.Version
	}
	common := 0
	for line := range strings.Lines(list("-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}", ".")) {
		module, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		want, ok := wanted[module]
		if !ok {
			continue
		}
		common++
		if version != want {
			t.Errorf("%s is %s here, and %s in Kubernetes: go get %[1]s@%[3]s", module, version, want)
			delete(wanted, module)
		}
	}
	if common < 100 {
		t.Errorf("%d common packages: too few to be all", common)
	}
}
