package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/kind"
)

func TestParseVersions(t *testing.T) {
	for _, tc := range []struct {
		name  string
		words []string
		want  []string
		is    error
	}{
		{"oldest first, by number", []string{"v1.100.0", "v1.37.1", "v1.36.3"}, []string{"v1.36.3", "v1.37.1", "v1.100.0"}, nil},
		{"named twice", []string{"v1.37.1", "v1.36.3", "v1.37.1"}, []string{"v1.36.3", "v1.37.1"}, nil},
		{"a pre-release is older", []string{"v1.37.0", "v1.37.0-rc.1"}, []string{"v1.37.0-rc.1", "v1.37.0"}, nil},
		{"none", nil, nil, binaries.ErrBadRef},
		{"not a release", []string{"v1.36.3", "1.37"}, nil, binaries.ErrBadVersion},
	} {
		t.Run(tc.name, func(t *testing.T) {
			given := slices.Clone(tc.words)
			got, err := parseVersions(tc.words)
			if !errors.Is(err, tc.is) || !slices.Equal(got, tc.want) {
				t.Errorf("got %v, %v; want %v, %v", got, err, tc.want, tc.is)
			}
			if !slices.Equal(tc.words, given) {
				t.Errorf("it changed its argument to %v", tc.words)
			}
		})
	}
}

// The kind backend looks for this name.
func TestNodeImage(t *testing.T) {
	if got := kind.ImageName([]string{"v1.36.3", "v1.37.1"}); got != "skewproof/node:v1.36.3_v1.37.1" {
		t.Errorf("got %s", got)
	}
}

func TestRecipe(t *testing.T) {
	one := recipe("a", "b")
	if again := recipe("a", "b"); again != one {
		t.Error("the same parts have two recipes")
	}
	for _, other := range [][]string{{"ab"}, {"a"}, {"b", "a"}, {"a", "b", ""}} {
		if recipe(other...) == one {
			t.Errorf("%q has the recipe of a and b", other)
		}
	}
}

// If the recipe omitted a source, images with old programs would look up to date.
func TestRecipeKnowsAllSources(t *testing.T) {
	for _, dir := range []string{"pause", "inpod", "balancer", "node"} {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", dir, files, err)
		}
		for _, f := range files {
			if _, err := sources.ReadFile(f); err != nil && !strings.HasSuffix(f, "_test.go") {
				t.Errorf("%s is not embedded", f)
			}
		}
	}
}

// An update of kind in go.mod must bring the images up to date.
func TestVersionsAreKinds(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}\n{{.Dir}}", "sigs.k8s.io/kind").Output()
	if err != nil {
		t.Fatal(err)
	}
	version, dir, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if version != kindVersion {
		t.Errorf("go.mod has kind %s, images are made for %s", version, kindVersion)
	}
	if dir == "" {
		t.Skip("the module of kind is not in the module cache")
	}
	for _, tc := range []struct{ file, text string }{
		{"pkg/build/nodeimage/defaults.go", `DefaultBaseImage = "` + kindBaseImage + `"`},
		{"pkg/cluster/internal/loadbalancer/const.go", `Image = "` + kind.LoadBalancerImage + `"`},
		{"images/base/Dockerfile", `ARG CONTAINERD_VERSION="` + containerdVersion + `"`},
		{"images/base/Dockerfile", `ARG CNI_PLUGINS_VERSION="` + cniPluginsVersion + `"`},
		{"images/base/Dockerfile", `ARG BASE_IMAGE=debian:` + debianSuite},
		{"images/base/files/etc/containerd/config.toml", "restrict_oom_score_adj = false\n"}, // node/node.sh changes it
	} {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(tc.file)))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), tc.text) {
			t.Errorf("%s of kind %s has no %q", tc.file, version, tc.text)
		}
	}
	files, err := kindFiles(os.DirFS(filepath.Join(dir, "images", "base", "files")))
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]int64{}
	for _, f := range files {
		modes[f.name] = f.mode
	}
	for name, want := range map[string]int64{
		"usr/local/bin/entrypoint":                    0o755,
		"kind/bin/mount-product-files.sh":             0o755,
		"kind/README.txt":                             0o644,
		"etc/containerd/config.toml":                  0o644,
		"etc/systemd/system/kubelet.service":          0o644,
		"etc/systemd/system/containerd.service":       0o644,
		"etc/sysctl.d/10-network-magic.conf":          0o644,
		"etc/systemd/system/kubelet.slice":            0o644,
		"etc/default/kubelet":                         0o644,
		"kind/bin/create-kubelet-cgroup-v2.sh":        0o755,
		"etc/systemd/system/undo-mount-hacks.service": 0o644,
	} {
		if modes[name] != want {
			t.Errorf("%s has the mode %o, want %o", name, modes[name], want)
		}
	}
}
