package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/binaries"
)

// What 'kubeadm config images list' of v1.36.3 says.
var wantedByKubeadm = []string{
	"registry.k8s.io/kube-apiserver:v1.36.3",
	"registry.k8s.io/kube-controller-manager:v1.36.3",
	"registry.k8s.io/kube-scheduler:v1.36.3",
	"registry.k8s.io/kube-proxy:v1.36.3",
	"registry.k8s.io/coredns/coredns:v1.14.2",
	"registry.k8s.io/pause:3.10.2",
	"registry.k8s.io/etcd:3.6.8-0",
}

func TestContents(t *testing.T) {
	got, err := contents(wantedByKubeadm, "registry.k8s.io/pause:3.10", []string{"v1.36.3", "v1.37.1"})
	if err != nil {
		t.Fatal(err)
	}
	want := []nestedImage{
		{"registry.k8s.io/kube-apiserver:v1.36.3", binaries.KubeAPIServer, "v1.36.3"},
		{"registry.k8s.io/kube-controller-manager:v1.36.3", binaries.KubeControllerManager, "v1.36.3"},
		{"registry.k8s.io/kube-scheduler:v1.36.3", binaries.KubeScheduler, "v1.36.3"},
		{"registry.k8s.io/pause:3.10.2", pause, ""},
		{"registry.k8s.io/etcd:3.6.8-0", binaries.Etcd, "v3.6.8"},
		{"registry.k8s.io/pause:3.10", pause, ""},
		{"docker.io/skewproof/kube-apiserver-reference:v1.36.3", binaries.KubeAPIServerReference, "v1.36.3"},
		{"registry.k8s.io/kube-apiserver:v1.37.1", binaries.KubeAPIServer, "v1.37.1"},
		{"docker.io/skewproof/kube-apiserver-reference:v1.37.1", binaries.KubeAPIServerReference, "v1.37.1"},
		{"docker.io/skewproof/inpod:latest", inpod, ""},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(nestedImage{})); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	archives := map[string]bool{}
	for _, i := range got {
		if archives[i.archive()] || strings.ContainsAny(i.archive(), "/:") {
			t.Errorf("%s is in the archive %q, which is another's or no file name", i.tag, i.archive())
		}
		archives[i.archive()] = true
	}
}

func TestContentsUnknown(t *testing.T) {
	for _, image := range []string{"registry.k8s.io/kube-novelty:v1.99.0", "docker.io/library/pause:3.10", "registry.k8s.io/pause", ""} {
		if got, err := contents([]string{image}, "registry.k8s.io/pause:3.10", []string{"v1.99.0"}); err == nil {
			t.Errorf("%q: got %v, and no error", image, got)
		}
	}
}

func TestSandboxImage(t *testing.T) {
	config := "[plugins.\"io.containerd.grpc.v1.cri\"]\n  # use fixed sandbox image\n  sandbox_image = \"registry.k8s.io/pause:3.10\"\n"
	if got, err := sandboxImage(config); err != nil || got != "registry.k8s.io/pause:3.10" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := sandboxImage("# sandbox_image is not here\n"); err == nil {
		t.Errorf("got %q", got)
	}
}
