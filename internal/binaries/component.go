package binaries

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Component is a program that a [Store] can get.
type Component string

// These are the components that a [Store] knows: those of a control plane on processes, then those
// of nodes, then tests.
const (
	KubeAPIServer Component = "kube-apiserver"
	Etcd          Component = "etcd"

	KubeControllerManager Component = "kube-controller-manager"
	KubeScheduler         Component = "kube-scheduler"
	Kubeadm               Component = "kubeadm"
	Kubectl               Component = "kubectl"
	Kubelet               Component = "kubelet"
	KubeProxy             Component = "kube-proxy"

	Containerd     Component = "containerd"
	ContainerdShim Component = "containerd-shim-runc-v2"
	ContainerdCtr  Component = "ctr"

	CNIHostLocal Component = "host-local"
	CNILoopback  Component = "loopback"
	CNIPortmap   Component = "portmap"
	CNIPtp       Component = "ptp"

	// E2ETest is Kubernetes' own end-to-end tests, which run against a control plane.
	E2ETest Component = "e2e.test"

	// KubeAPIServerFlags is skewproof's own program. It has the source of a kube-apiserver in it, and
	// writes the flags and the feature gates of that version.
	KubeAPIServerFlags Component = "kube-apiserver-flags"

	// KubeAPIServerReference is a kube-apiserver with skewproof's reference proxy in place of its own
	// Mixed Version Proxy.
	KubeAPIServerReference Component = "kube-apiserver-reference"

	// ClientGo, ControllerRuntime and ClientNode are skewproof's own programs that use these
	// libraries. Their version is the version of the library. ClientNode uses the JavaScript client,
	// and takes Node.js to be made and to run. See package libraries.
	ClientGo          Component = "client-go"
	ControllerRuntime Component = "controller-runtime"
	ClientNode        Component = "client-node"
)

type project struct {
	module    string // under which it is published
	major     string // of all its releases
	example   string // a version of it
	releases  string // where people find them
	download  bool   // a Store knows where its binaries are published
	tags      string // build tags
	main      string // the source of skewproof's own main function
	reference bool   // it is a kube-apiserver with the reference proxy
	library   bool   // package libraries has the source of a program that uses it
	npm       bool   // it is published as an npm package, and not as a Go module
}

// The Go modules and the releases of the components.
var (
	kubernetes = &project{module: "k8s.io/kubernetes", major: "v1", example: "v1.37.1", releases: "https://kubernetes.io/releases",
		download: true}
	etcd = &project{module: "go.etcd.io/etcd/server/v3", major: "v3", example: DefaultEtcd,
		releases: "https://github.com/etcd-io/etcd/releases",
		download: true, main: etcdMain}
	kubernetesFlags = &project{module: kubernetes.module, major: kubernetes.major, example: kubernetes.example, releases: kubernetes.releases,
		main: flagsMain}
	kubernetesReference = &project{module: kubernetes.module, major: kubernetes.major, example: kubernetes.example,
		releases: kubernetes.releases, reference: true}
	// These are the tags of kind's images/base/Dockerfile. They leave out snapshotters that kind
	// does not use.
	containerd = &project{module: "github.com/containerd/containerd/v2", major: "v2", example: "v2.3.4",
		releases: "https://github.com/containerd/containerd/releases", tags: "no_aufs no_zfs no_btrfs no_devmapper"}
	cniPlugins = &project{module: "github.com/containernetworking/plugins", major: "v1", example: "v1.9.1",
		releases: "https://github.com/containernetworking/plugins/releases"}
	clientGo = &project{module: "k8s.io/client-go", major: "v0", example: "v0.37.1",
		releases: "https://github.com/kubernetes/client-go/tags", library: true}
	controllerRuntime = &project{module: "sigs.k8s.io/controller-runtime", major: "v0", example: "v0.25.2",
		releases: "https://github.com/kubernetes-sigs/controller-runtime/releases", library: true}
	clientNode = &project{module: "@kubernetes/client-node", major: "v1", example: "v1.4.0",
		releases: "https://github.com/kubernetes-client/javascript/releases", library: true, npm: true}
)

type program struct {
	*project
	pkg    string   // to build, below the module; "" means that skewproof has its own main function
	ask    []string // arguments that make it print its version
	answer string   // the text before the version in a line of that output
}

// tests reports whether the program is the test binary of its package.
func (p program) tests() bool { return strings.HasPrefix(p.pkg, "test/") }

var programs = map[Component]program{
	// Sources: k8s.io/component-base version/verflag, and etcd server/etcdmain/etcd.go.
	KubeAPIServer:          {kubernetes, "cmd/kube-apiserver", []string{"--version"}, "Kubernetes "},
	KubeControllerManager:  {kubernetes, "cmd/kube-controller-manager", []string{"--version"}, "Kubernetes "},
	KubeScheduler:          {kubernetes, "cmd/kube-scheduler", []string{"--version"}, "Kubernetes "},
	Kubelet:                {kubernetes, "cmd/kubelet", []string{"--version"}, "Kubernetes "},
	KubeProxy:              {kubernetes, "cmd/kube-proxy", []string{"--version"}, "Kubernetes "},
	Kubeadm:                {kubernetes, "cmd/kubeadm", []string{"version", "--output=short"}, ""},
	Kubectl:                {kubernetes, "cmd/kubectl", []string{"version", "--client"}, "Client Version: "},
	KubeAPIServerFlags:     {kubernetesFlags, "", []string{"--version"}, "Kubernetes "},
	KubeAPIServerReference: {kubernetesReference, "", []string{"--version"}, "Kubernetes "},
	Etcd:                   {etcd, "", []string{"--version"}, "etcd Version: "},
	Containerd:             {containerd, "cmd/containerd", []string{"--version"}, "containerd github.com/containerd/containerd/v2 "},
	ContainerdShim:         {containerd, "cmd/containerd-shim-runc-v2", []string{"-v"}, "Version: "},
	ContainerdCtr:          {containerd, "cmd/ctr", []string{"--version"}, "ctr github.com/containerd/containerd/v2 "},
	// Source: k8s.io/kubernetes test/e2e/e2e_test.go, TestMain.
	E2ETest:           {kubernetes, "test/e2e", []string{"--version"}, ""},
	ClientGo:          {clientGo, "", []string{"--version"}, "client-go "},
	ControllerRuntime: {controllerRuntime, "", []string{"--version"}, "controller-runtime "},
	ClientNode:        {clientNode, "", []string{"--version"}, "client-node "},
	// A plugin without a command prints its version.
	CNIHostLocal: {cniPlugins, "plugins/ipam/host-local", nil, "CNI host-local plugin "},
	CNILoopback:  {cniPlugins, "plugins/main/loopback", nil, "CNI loopback plugin "},
	CNIPortmap:   {cniPlugins, "plugins/meta/portmap", nil, "CNI portmap plugin "},
	CNIPtp:       {cniPlugins, "plugins/main/ptp", nil, "CNI ptp plugin "},
}

// Components returns the names of all components that a [Store] knows.
func Components() []Component { return slices.Sorted(maps.Keys(programs)) }

// ParseComponent returns the component of that name. The error wraps [ErrBadRef].
func ParseComponent(name string) (Component, error) {
	if _, ok := programs[Component(name)]; ok {
		return Component(name), nil
	}
	var names []string
	for _, c := range Components() {
		names = append(names, string(c))
	}
	return "", fmt.Errorf("%w: unknown component %q: it is one of %s", ErrBadRef, name, strings.Join(names, ", "))
}

func (c Component) module() string { return programs[c].module }

// buildModulePath is the path of the main module of a build. Nothing looks it up. Packages of this
// repository keep their paths.
func (c Component) buildModulePath() string {
	if programs[c].reference {
		return "github.com/skewproof/skewproof"
	}
	return "skewproof.build/" + string(c)
}
