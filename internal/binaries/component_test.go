package binaries

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"
)

// These are outputs of the real programs.
func TestReleaseNamed(t *testing.T) {
	for _, tc := range []struct {
		component  Component
		said, want string
	}{
		{KubeAPIServer, "Kubernetes v1.37.1\n", "v1.37.1"},
		{KubeControllerManager, "Kubernetes v1.36.3\n", "v1.36.3"},
		{KubeScheduler, "Kubernetes v1.36.3\n", "v1.36.3"},
		{Kubelet, "Kubernetes v1.36.3\n", "v1.36.3"},
		{KubeProxy, "Kubernetes v1.36.3\n", "v1.36.3"},
		{Kubeadm, "v1.36.3\n", "v1.36.3"},
		{Kubectl, "Client Version: v1.36.3\nKustomize Version: v5.8.1\n", "v1.36.3"},
		{E2ETest, "v1.37.1\n", "v1.37.1"},
		{Etcd, "etcd Version: 3.6.8\nGit SHA: Not provided (use ./build instead of go build)\nGo Version: go1.26.8\n", "v3.6.8"},
		{Containerd, "containerd github.com/containerd/containerd/v2 v2.3.4 \n", "v2.3.4"},
		{Containerd, "containerd github.com/containerd/containerd/v2 v2.3.4 0123abc\n", "v2.3.4"}, // of a release
		{ContainerdShim, "containerd-shim-runc-v2:\n  Version:  v2.3.4\n  Revision: \n  Go version: go1.26.8\n", "v2.3.4"},
		{ContainerdCtr, "ctr github.com/containerd/containerd/v2 v2.3.4\n", "v2.3.4"},
		{CNIHostLocal, "CNI host-local plugin v1.9.1\nCNI protocol versions supported: 0.1.0, 1.1.0\n", "v1.9.1"},
		{CNILoopback, "CNI loopback plugin v1.9.1\n", "v1.9.1"},
		{CNIPortmap, "CNI portmap plugin v1.9.1\n", "v1.9.1"},
		{CNIPtp, "CNI ptp plugin v1.9.1\n", "v1.9.1"},
		{CNIPtp, "CNI loopback plugin v1.9.1\n", ""},
		{Kubectl, "Kustomize Version: v5.8.1\n", ""},
		{Kubeadm, "", ""},
	} {
		if got := versionIn(tc.component, tc.said); got != tc.want {
			t.Errorf("%s says %q: got %q, want %q", tc.component, tc.said, got, tc.want)
		}
	}
}

// A component without released binaries that a Store knows is built at once, with the tags of its
// project.
func TestBuildWithoutRelease(t *testing.T) {
	goEnvironment(t)
	s := newStore(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("asked for %s", r.URL)
		http.NotFound(w, r)
	}))
	s.Go = "go"
	b, err := s.Get(t.Context(), Containerd, "v2.3.4")
	if err != nil || b.Origin != OriginBuild {
		t.Fatalf("got %+v, %v", b, err)
	}
	said, err := exec.Command(b.Path).CombinedOutput()
	if want := "containerd github.com/containerd/containerd/v2 v2.3.4 without btrfs\n"; err != nil || string(said) != want {
		t.Errorf("it says %q, %v; want %q", said, err, want)
	}
	if text := progressOf(s).String(); strings.Contains(text, "not downloaded") {
		t.Errorf("there was nothing to download:\n%s", text)
	}
}

// The tests of a package are built as such, with its version, and no download is looked for: they
// are published in an archive only.
func TestBuildTests(t *testing.T) {
	goEnvironment(t)
	s := newStore(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("asked for %s", r.URL)
		http.NotFound(w, r)
	}))
	s.Go = "go"
	b, err := s.Get(t.Context(), E2ETest, testVersion)
	if err != nil || b.Origin != OriginBuild || b.SHA256 == "" {
		t.Fatalf("got %+v, %v", b, err)
	}
	said, err := exec.Command(b.Path, "--version").Output()
	if want := testVersion + "\n"; err != nil || string(said) != want {
		t.Errorf("it says %q, %v; want %q", said, err, want)
	}
}
