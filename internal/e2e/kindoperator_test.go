package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/skewproof/skewproof/internal/cluster/kind"
)

// operatorFiles are the files that an operator copies, from this directory.
const operatorFiles = "../../kindconfigs/kubeadm"

// onlyNewer is a resource that a v1.37 kube-apiserver serves by default and a v1.36 kube-apiserver
// does not.
const onlyNewer = "/apis/resource.k8s.io/v1/devicetaintrules"

// operatorsCluster is a cluster of two nodes that have the operators' files.
type operatorsCluster struct {
	nodes      []string // the first has the newer kube-apiserver
	endpoints  []string // of the kubernetes Service, host:port, one for each node
	kubeconfig string   // of the administrator, through the load balancer
	admin      *kubernetes.Clientset
	pod        *rest.Config // of an in-cluster client
}

// The test uses the files in kindconfigs/kubeadm unchanged: kubeadm makes a cluster of two nodes
// with them, and the kubernetes Service leads in-cluster clients to the sidecars.
func TestOperatorsFilesOnKind(t *testing.T) {
	needsKind(t)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	c := startOperatorsCluster(ctx, t, true)
	c.adopted(ctx, t)
	c.sidecarEndsAlone(ctx, t)
}

// sidecarEndsAlone checks that the end of a sidecar does not end its kube-apiserver.
func (c *operatorsCluster) sidecarEndsAlone(ctx context.Context, t *testing.T) {
	t.Helper()
	before := started(ctx, t, c.nodes[0], "kube-apiserver")
	_, err := kind.Docker(ctx, nil, "exec", c.nodes[0], "pkill", "-KILL", "-x", "skewproof")
	must(t, err)
	client := as(t, c.pod, c.endpoints[0])
	eventually(t, "the kubelet starts the sidecar again", 3*time.Minute, func() bool {
		_, err := client.Discovery().RESTClient().Get().AbsPath(onlyNewer).DoRaw(ctx)
		return err == nil
	})
	if after := started(ctx, t, c.nodes[0], "kube-apiserver"); after != before {
		t.Errorf("the kube-apiserver was restarted with its sidecar: process %s, before %s", after, before)
	}
}

// started is the ID of the process with that name in a node.
func started(ctx context.Context, t *testing.T, node, process string) string {
	t.Helper()
	id, err := kind.Docker(ctx, nil, "exec", node, "pgrep", "-x", process)
	must(t, err)
	return id
}

// startOperatorsCluster makes the cluster, with or without a sidecar on each node.
func startOperatorsCluster(ctx context.Context, t *testing.T, sidecars bool) *operatorsCluster {
	t.Helper()
	name, err := kind.NewName()
	must(t, err)
	dir := t.TempDir()
	image := filepath.Join(dir, "proxy.tar")
	build := exec.CommandContext(ctx, "make", "-C", "../..", "image", "IMAGE="+image)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make image: %v\n%s", err, out)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	configuration := operatorsConfiguration(t, name, sidecars)

	// By the network's label and the cluster's name, 'kind-clean' finds what a killed test leaves
	// behind.
	_, err = kind.Docker(ctx, nil, "network", "create", "--driver=bridge", "--label", "skewproof.cluster="+name, "--label", "skewproof.keys="+dir, name)
	must(t, err)
	t.Cleanup(func() {
		_, err := kind.Clean(context.WithoutCancel(ctx), name)
		must(t, err)
	})
	t.Setenv("KIND_EXPERIMENTAL_DOCKER_NETWORK", name)
	nodes := []string{name + "-control-plane", name + "-control-plane2"}
	log := &kindLog{t: t, stage: func() bool {
		if running, err := kind.Docker(ctx, nil, "ps", "--quiet", "--filter", "name="+name+"-control-plane"); err != nil || strings.Count(running, "\n") != 1 {
			return false
		}
		for i, node := range nodes {
			load(ctx, t, node, image, nodeFiles(t, imagePatch(operatorVersions[i]), sidecars))
		}
		return true
	}}
	err = cluster.NewProvider(cluster.ProviderWithDocker(), cluster.ProviderWithLogger(log)).Create(name,
		cluster.CreateWithRawConfig(configuration), cluster.CreateWithKubeconfigPath(kubeconfig), cluster.CreateWithRetain(true))
	if err != nil {
		for _, node := range nodes {
			tellNode(t, node)
		}
		t.Fatalf("make a cluster with the operators' files: %v", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(t, err)
	admin, err := kubernetes.NewForConfig(config)
	must(t, err)
	c := &operatorsCluster{nodes: nodes, kubeconfig: kubeconfig, admin: admin, pod: podConfig(ctx, t, admin, config)}
	for _, node := range nodes {
		c.endpoints = append(c.endpoints, net.JoinHostPort(nodeAddress(ctx, t, admin, node), "6443"))
	}
	if now := serviceEndpoints(ctx, t, admin); !slices.Equal(now, slices.Sorted(slices.Values(c.endpoints))) {
		t.Fatalf("the kubernetes Service has the endpoints %v, want %v", now, c.endpoints)
	}
	return c
}

// operatorVersions are those of the kube-apiservers, by node.
var operatorVersions = []string{newPair.to, newPair.from}

// imagePatch is kubeadm's patch of a kube-apiserver's static pod that chooses its version.
func imagePatch(version string) string {
	return "- {op: replace, path: /spec/containers/0/image, value: 'registry.k8s.io/kube-apiserver:" + version + "'}\n"
}

// operatorsConfiguration is kind's configuration. Everything about sidecars is copied unchanged
// from the operators' files; [nodeFiles] puts the other files on the nodes.
func operatorsConfiguration(t *testing.T, name string, sidecars bool) []byte {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nname: %s\nnetworking: {disableDefaultCNI: true, kubeProxyMode: none}\n", name)
	b.WriteString("kubeadmConfigPatches:\n")
	if sidecars {
		kubeadm, err := os.ReadFile(filepath.Join(operatorFiles, "reference.yaml"))
		must(t, err)
		fmt.Fprintf(&b, "- |\n%s", indented(string(kubeadm)))
	}
	fmt.Fprintf(&b, "- |\n  kind: InitConfiguration\n  patches: {directory: /%s}\n", nodePatchesDir)
	b.WriteString("  skipPhases: [preflight, addon/kube-proxy, addon/coredns]\n  timeouts: {kubernetesAPICall: 4m0s}\n")
	fmt.Fprintf(&b, "- |\n  kind: JoinConfiguration\n  patches: {directory: /%s}\n", nodePatchesDir)
	b.WriteString("  timeouts: {kubernetesAPICall: 4m0s, tlsBootstrap: 8m0s}\n- |\n  kind: KubeletConfiguration\n  failCgroupV1: false\nnodes:\n")
	for range operatorVersions {
		fmt.Fprintf(&b, "- {role: control-plane, image: '%s'}\n", kind.ImageName([]string{newPair.from, newPair.to}))
	}
	return []byte(b.String())
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ") + "\n"
}

// load waits until a node's containerd is up, and gives the node the sidecar's image and a tar
// archive of files.
func load(ctx context.Context, t *testing.T, node, image string, files []byte) {
	t.Helper()
	eventually(t, node+" takes the image", 2*time.Minute, func() bool {
		archive, err := os.Open(image)
		must(t, err)
		defer func() { _ = archive.Close() }()
		_, err = kind.Docker(ctx, nil, "exec", node, "systemctl", "is-active", "--quiet", "multi-user.target")
		if err != nil {
			return false
		}
		_, err = kind.Docker(ctx, archive, "exec", "--interactive", node, "ctr", "--namespace=k8s.io", "images", "import", "-")
		return err == nil
	})
	_, err := kind.Docker(ctx, bytes.NewReader(files), "exec", "--interactive", node, "tar", "-x", "-C", "/")
	must(t, err)
}

// serviceEndpoints are the addresses to which kube-proxy sends in-cluster clients.
func serviceEndpoints(ctx context.Context, t *testing.T, admin *kubernetes.Clientset) (all []string) {
	t.Helper()
	eventually(t, "every kube-apiserver is an endpoint of the kubernetes Service", time.Minute, func() bool {
		slicesOf, err := admin.DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kubernetes"})
		if err != nil {
			return false
		}
		all = nil
		for _, slice := range slicesOf.Items {
			for _, endpoint := range slice.Endpoints {
				all = append(all, fmt.Sprintf("%s:%d", endpoint.Addresses[0], *slice.Ports[0].Port))
			}
		}
		slices.Sort(all)
		return len(all) == 2
	})
	return all
}

// podConfig is the configuration of a client in a pod: the token of a service account, and the
// cluster's authority. The account may read [onlyNewer].
func podConfig(ctx context.Context, t *testing.T, admin *kubernetes.Clientset, config *rest.Config) *rest.Config {
	t.Helper()
	subject := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "kube-system", Name: "default"}
	_, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"}, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}, metav1.CreateOptions{})
	must(t, err)
	token, err := admin.CoreV1().ServiceAccounts(subject.Namespace).CreateToken(ctx, subject.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	return &rest.Config{
		BearerToken: token.Status.Token,
		// Pods use the name that is in the serving certificates of every cluster.
		TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData, ServerName: "kubernetes.default.svc"},
	}
}

func as(t *testing.T, config *rest.Config, endpoint string) *kubernetes.Clientset {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Host = "https://" + endpoint
	clients, err := kubernetes.NewForConfig(config)
	must(t, err)
	return clients
}

// kindLog shows kind's stages, and calls stage at each of them until stage returns true.
type kindLog struct {
	log.NoopLogger
	t     *testing.T
	stage func() bool
	done  bool
}

func (l *kindLog) V(log.Level) log.InfoLogger { return kindInfo{l} }

func (l *kindLog) Error(message string) { l.t.Log(message) }

type kindInfo struct{ *kindLog }

func (i kindInfo) Enabled() bool                 { return true }
func (i kindInfo) Infof(format string, a ...any) { i.Info(fmt.Sprintf(format, a...)) }
func (i kindInfo) Info(message string) {
	i.t.Log(message)
	if !i.done {
		i.done = i.stage()
	}
}
