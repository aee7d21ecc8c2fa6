package kindconfigs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
var byHand = []string{
	"kubeadm/builtin.yaml", "kubeadm/metrics-rbac.yaml", "kubeadm/patches/kube-apiserver+strategic.yaml", "kubeadm/reference.yaml",
	"kubeadm/skewproof-proxy.yaml",
}

// An operator's kube-apiservers have the arguments of a run's, except for those that only a run
// needs. Behind a sidecar they also listen on another address rather than on another port. In a run
// the harness asks that port for the ground truth. A kube-apiserver publishes its own port in the
// kubernetes Service, so in-cluster clients would bypass the sidecar there. A run has no such
// clients; a cluster has.
// Source: k8s.io/kubernetes/pkg/controlplane/controller/kubernetesservice/controller.go.
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
			switch {
			case a.Name == "secure-port":
				want = append(want, "bind-address=127.0.0.1")
			case !a.Observing:
				want = append(want, a.Name+"="+a.Value)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("subject %s: %q, want %q", subject, got, want)
		}
	}
}

// An operator's sidecar has the arguments of a run's sidecar, except for its addresses and for what
// only a run needs. The kube-apiserver's certificate need not be valid for the loopback address,
// because the sidecar verifies a host name instead.
//
// Why the rest of the static pod is as it is: only root can read the keys that kubeadm makes. Go's
// garbage collector runs more often near GOMEMLIMIT, and the limit of memory keeps a sidecar that
// needs too much from taking the memory of the kube-apiserver and of etcd.
//
// The patch of the kube-apiserver is needed because kubeadm lets kubelets probe at
// --advertise-address, where the sidecar answers: its end would restart the kube-apiserver too.
// Source: GetAPIServerProbeAddress in k8s.io/kubernetes/cmd/kubeadm/app/util/staticpod/utils.go.
func TestOperatorsSidecarIsThatOfARun(t *testing.T) {
	manifest, err := os.ReadFile("kubeadm/skewproof-proxy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(manifest, &pod); err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(kind.ProxyArguments(), func(a string) bool {
		name, _, _ := strings.Cut(a, "=")
		return slices.Contains([]string{"--access-log", "--bind-address", "--upstream", "--find-direct-peers"}, name)
	})
	want = append(want, "--bind-address=$(NODE_ADDRESS)", "--upstream=https://127.0.0.1:6443", "--upstream-server-name=kubernetes.default.svc")
	sidecar := pod.Spec.Containers[0]
	if !slices.Equal(sidecar.Args, want) || sidecar.Image != kind.OperatorImage {
		t.Errorf("%s runs with %q, want %s with %q", sidecar.Image, sidecar.Args, kind.OperatorImage, want)
	}
}

// Files that no example makes any more would be copied for ever.
func TestNoFileIsLeftOver(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.yaml", "kubeadm/*.yaml", "kubeadm/patches/*", "files/*.yaml", "files/patches/*/*"} {
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
