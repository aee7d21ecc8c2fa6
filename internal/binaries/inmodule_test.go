package binaries

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var inModules = flag.Bool("in-modules", false, "test the reference proxy in the modules of kube-apiservers, which takes minutes")

// A kube-apiserver with the reference proxy has the dependencies of its release, and not those of
// our go.mod. In the modules of the oldest and the newest release the sources are vetted, and the
// tests that need a kube-apiserver's packages run with the race detector.
func TestTheReferenceInTheModulesOfReleases(t *testing.T) {
	if !*inModules {
		t.Skip("takes minutes: -args -in-modules")
	}
	for _, version := range []string{"v1.30.14", "v1.37.1"} {
		t.Run(version, func(t *testing.T) {
			ref, err := NewRef(KubeAPIServerReference, version)
			if err != nil {
				t.Fatal(err)
			}
			tool, _, _, err := prepareBuild(t.Context(), "go", t.TempDir(), ref, (&Store{}).progress(ref))
			if err != nil {
				t.Fatal(err)
			}
			for from, to := range map[string]string{"../../proxy/apiserver": "proxy/apiserver", "../../proxy/apiserver/_server": "."} {
				tests, err := filepath.Glob(from + "/*_test.go")
				if err != nil || len(tests) == 0 {
					t.Fatalf("%s has no tests: %v", from, err)
				}
				for _, test := range tests {
					content, err := os.ReadFile(test)
					if err == nil {
						err = os.WriteFile(filepath.Join(tool.dir, to, filepath.Base(test)), content, 0o600)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, args := range [][]string{
				{"vet", "-trimpath", noDWARF, "./..."},
				{"vet", "-trimpath", noDWARF, "-tags", "planted", "./proxy/apiserver"},
				{"test", "-vet=off", "-trimpath", noDWARF, "."},
				{"test", "-vet=off", "-trimpath", noDWARF, "-race", "./proxy/apiserver"},
			} {
				t.Run(strings.Join(args, " "), func(t *testing.T) {
					cmd := exec.CommandContext(t.Context(), tool.path, args...)
					cmd.Dir = tool.dir
					cmd.Env = append(os.Environ(), tool.environment()...)
					if slices.Contains(args, "-race") {
						// testing/synctest refuses the timers of Go 1.22, which are those of v1.30. Nothing in
						// the proxy stops or resets a timer, so both kinds are alike for it.
						cmd.Env = append(cmd.Env, "CGO_ENABLED=1", "GODEBUG=asynctimerchan=0")
					}
					if out, err := cmd.CombinedOutput(); err != nil {
						t.Errorf("%v\n%s", err, out)
					}
				})
			}
		})
	}
}
