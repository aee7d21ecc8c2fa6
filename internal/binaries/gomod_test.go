package binaries

import (
	"strings"
	"testing"
)

// A part of the go.mod of k8s.io/kubernetes v1.37.1, with one replacement that is not of a staging
// module. It does not require the last one.
const upstreamGoMod = `// This is a generated file. Do not edit directly.

module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require (
	github.com/JeffAshton/win_pdh v0.0.0-20161109143554-76bb4ee9f0ab
	k8s.io/api v0.0.0
	k8s.io/component-base v0.0.0
	k8s.io/klog/v2 v2.140.0
)

require github.com/kylelemons/godebug v1.1.0 // indirect

replace (
	example.org/pinned => example.org/pinned v1.2.3
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/component-base => ./staging/src/k8s.io/component-base
	k8s.io/sample-cli-plugin => ./staging/src/k8s.io/sample-cli-plugin
)
`

func TestBuildModule(t *testing.T) {
	for _, tc := range []struct {
		name     string
		ref      Ref
		upstream string
		want     string
	}{
		{"kube-apiserver", Ref{KubeAPIServer, "v1.37.1"}, upstreamGoMod, `module skewproof.build/kube-apiserver

go 1.26.0

godebug default=go1.26

require k8s.io/kubernetes v1.37.1

replace k8s.io/api => k8s.io/api v0.37.1

replace k8s.io/component-base => k8s.io/component-base v0.37.1

replace k8s.io/sample-cli-plugin => k8s.io/sample-cli-plugin v0.37.1
`},
		{"pre-release", Ref{KubeAPIServer, "v1.38.0-rc.1"}, "module k8s.io/kubernetes\n\ngo 1.26.0\n\nreplace k8s.io/api => ./staging/src/k8s.io/api\n",
			`module skewproof.build/kube-apiserver

go 1.26.0

require k8s.io/kubernetes v1.38.0-rc.1

replace k8s.io/api => k8s.io/api v0.38.0-rc.1
`},
		{"etcd: sibling directories are not staging modules", Ref{Etcd, "v3.6.8"}, `module go.etcd.io/etcd/server/v3

go 1.24.0

toolchain go1.24.13

require go.etcd.io/etcd/api/v3 v3.6.8

replace go.etcd.io/etcd/api/v3 => ../api
`, `module skewproof.build/etcd

go 1.24.0

require go.etcd.io/etcd/server/v3 v3.6.8
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := buildModule(tc.ref, []byte(tc.upstream))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tc.want)
			}
		})
	}
}

func TestBuildModuleOfNonsense(t *testing.T) {
	_, err := buildModule(Ref{KubeAPIServer, "v1.37.1"}, []byte("<html>"))
	if err == nil || !strings.Contains(err.Error(), "kube-apiserver v1.37.1") {
		t.Errorf("got %v", err)
	}
}
