package kindconfigs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/cluster/kind"
	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// The files that people read and copy are those that the code makes.
func TestFilesAreWhatTheCodeMakes(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		golden.Hold(t, name, want)
	}
}

// byHand are the files for operators that no code makes.
var byHand = []string{"kubeadm/builtin.yaml", "kubeadm/reference.yaml"}

// An operator's kube-apiservers have the arguments of a run's, except for those that only a run
// needs.
func TestOperatorsArgumentsAreThoseOfARun(t *testing.T) {
	for _, subject := range []string{scenario.SubjectBuiltin, scenario.SubjectReference} {
		content, err := os.ReadFile("kubeadm/" + subject + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			APIServer struct {
				ExtraArgs []struct{ Name, Value string } `json:"extraArgs"`
			} `json:"apiServer"`
		}
		if err := yaml.Unmarshal(content, &c); err != nil {
			t.Fatal(err)
		}
		var got, want []string
		for _, a := range c.APIServer.ExtraArgs {
			got = append(got, a.Name+"="+a.Value)
		}
		arguments, err := kind.APIServerArguments(v136, subject, nil, history.OwnFlags{})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range arguments {
			if !a.Observing {
				want = append(want, a.Name+"="+a.Value)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("subject %s: %q, want %q", subject, got, want)
		}
	}
}

// Files that no example makes any more would be copied for ever.
func TestNoFileIsLeftOver(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.yaml", "kubeadm/*.yaml", "files/patches/*/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no file is like %s (%v)", pattern, err)
		}
		for _, name := range found {
			if _, ok := files[name]; !ok && !slices.Contains(byHand, name) {
				t.Errorf("%s belongs to no example: remove it", name)
			}
		}
	}
}

// kind refuses fields that it does not know, and so does this test: indentation of blocks in blocks
// is easily got wrong.
func TestKindUnderstandsTheExamples(t *testing.T) {
	for _, e := range examples() {
		content, err := os.ReadFile(e.file)
		if err != nil {
			t.Fatal(err)
		}
		var c v1alpha4.Cluster
		if err := yaml.UnmarshalStrict(content, &c); err != nil {
			t.Errorf("%s: %v", e.file, err)
		}
		if len(c.Nodes) != 3 {
			t.Errorf("%s has %d nodes, want 3", e.file, len(c.Nodes))
		}
		for _, n := range c.Nodes {
			for _, patch := range n.KubeadmConfigPatches {
				dir, ok := patchDirectory(t, patch)
				if !ok {
					t.Errorf("%s: a node's patch of kubeadm's configuration names no directory:\n%s", e.file, patch)
				}
				if _, err := os.Stat(filepath.Join("files", strings.TrimPrefix(dir, "/kind/skewproof/"))); err != nil {
					t.Errorf("%s: kubeadm would find no patches in %s: %v", e.file, dir, err)
				}
			}
		}
	}
}

func patchDirectory(t *testing.T, patch string) (string, bool) {
	t.Helper()
	var c struct {
		Patches struct{ Directory string }
	}
	if err := yaml.Unmarshal([]byte(patch), &c); err != nil {
		t.Fatal(err)
	}
	return c.Patches.Directory, c.Patches.Directory != ""
}
