package binaries

import (
	"strings"
	"testing"
)

func TestLinkerFlags(t *testing.T) {
	commit := strings.Repeat("0123456789", 4)
	kube := func(pkg, extra string) string {
		return " -X " + pkg + ".gitVersion=v1.37.1 -X " + pkg + ".gitMajor=1 -X " + pkg + ".gitMinor=37 -X " + pkg + ".gitTreeState=clean" + extra
	}
	for _, tc := range []struct {
		name   string
		ref    Ref
		commit string
		want   string
	}{
		{"commit unknown", Ref{KubeAPIServer, "v1.37.1"}, "",
			"-s -w" + kube("k8s.io/client-go/pkg/version", "") + kube("k8s.io/component-base/version", "")},
		{"commit known", Ref{KubeAPIServer, "v1.37.1"}, commit,
			"-s -w" + kube("k8s.io/client-go/pkg/version", " -X k8s.io/client-go/pkg/version.gitCommit="+commit) +
				kube("k8s.io/component-base/version", " -X k8s.io/component-base/version.gitCommit="+commit)},
		{"etcd", Ref{Etcd, "v3.6.8"}, "", "-s -w"},
		{"etcd, commit known", Ref{Etcd, "v3.6.8"}, commit, "-s -w -X go.etcd.io/etcd/api/v3/version.GitSHA=012345678"},
		{"containerd", Ref{Containerd, "v2.3.4"}, commit, "-s -w -X github.com/containerd/containerd/v2/version.Version=v2.3.4"},
		{"a CNI plugin", Ref{CNIPtp, "v1.9.1"}, commit,
			"-s -w -X github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion=v1.9.1"},
		{"an answer of a proxy is not a flag", Ref{Etcd, "v3.6.8"}, "x -extld=/bin/sh", "-s -w"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := linkerFlags(tc.ref, tc.commit); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
