package e2e

import (
	"context"
	"fmt"
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

// The test uses the files in kindconfigs/kubeadm unchanged: kubeadm makes a cluster of two nodes
// with them, and the kubernetes Service leads in-cluster clients to the sidecars.
func TestOperatorsFilesOnKind(t *testing.T) {
	needsKind(t)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	nodes, config := startOperatorsCluster(ctx, t)
	admin, err := kubernetes.NewForConfig(config)
	must(t, err)

	endpoints := serviceEndpoints(ctx, t, admin)
	if len(endpoints) != len(nodes) {
		t.Fatalf("the kubernetes Service has the endpoints %v, want one for each of %v", endpoints, nodes)
	}
	pod := podConfig(ctx, t, admin, config)
	for _, endpoint := range endpoints {
		client := as(t, pod, endpoint)
		eventually(t, "an in-cluster client of "+endpoint+" gets a resource that only the newer kube-apiserver serves", time.Minute, func() bool {
			_, err := client.Discovery().RESTClient().Get().AbsPath(onlyNewer).DoRaw(ctx)
			return err == nil
		})
		for range 20 {
			if _, err := client.Discovery().RESTClient().Get().AbsPath(onlyNewer).DoRaw(ctx); err != nil {
				t.Errorf("an in-cluster client asks %s for %s: %v", endpoint, onlyNewer, err)
			}
		}
	}
	for _, node := range nodes {
		listeners, err := kind.Docker(ctx, nil, "exec", node, "cat", "/proc/net/tcp", "/proc/net/tcp6")
		must(t, err)
		for _, everywhere := range []string{" 00000000:192B ", " " + strings.Repeat("0", 32) + ":192B "} { // port 6443
			if strings.Contains(listeners, everywhere) {
				t.Errorf("something listens on all addresses of %s at port 6443: clients can bypass the sidecar", node)
			}
		}
	}
	// The end of a sidecar must not end its kube-apiserver.
	before := started(ctx, t, nodes[0], "kube-apiserver")
	_, err = kind.Docker(ctx, nil, "exec", nodes[0], "pkill", "-KILL", "-x", "skewproof")
	must(t, err)
	client := as(t, pod, endpoints[0])
	eventually(t, "the kubelet starts the sidecar again", 3*time.Minute, func() bool {
		_, err := client.Discovery().RESTClient().Get().AbsPath(onlyNewer).DoRaw(ctx)
		return err == nil
	})
	if after := started(ctx, t, nodes[0], "kube-apiserver"); after != before {
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

// startOperatorsCluster returns the nodes of a cluster whose first kube-apiserver is the newer one,
// and a configuration of the cluster's administrator.
func startOperatorsCluster(ctx context.Context, t *testing.T) (nodes []string, admin *rest.Config) {
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
	configuration := operatorsCluster(t, dir, name)

	// By the network's label and the cluster's name, 'kind-clean' finds what a killed test leaves
	// behind.
	_, err = kind.Docker(ctx, nil, "network", "create", "--driver=bridge", "--label", "skewproof.cluster="+name, "--label", "skewproof.keys="+dir, name)
	must(t, err)
	t.Cleanup(func() {
		_, err := kind.Clean(context.WithoutCancel(ctx), name)
		must(t, err)
	})
	t.Setenv("KIND_EXPERIMENTAL_DOCKER_NETWORK", name)
	nodes = []string{name + "-control-plane", name + "-control-plane2"}
	log := &kindLog{t: t, stage: func() bool {
		if running, err := kind.Docker(ctx, nil, "ps", "--quiet", "--filter", "name="+name+"-control-plane"); err != nil || strings.Count(running, "\n") != 1 {
			return false
		}
		for _, node := range nodes {
			load(ctx, t, node, image)
		}
		return true
	}}
	err = cluster.NewProvider(cluster.ProviderWithDocker(), cluster.ProviderWithLogger(log)).Create(name,
		cluster.CreateWithRawConfig(configuration), cluster.CreateWithKubeconfigPath(kubeconfig), cluster.CreateWithRetain(true))
	if err != nil {
		for _, node := range nodes {
			logs, _ := kind.Docker(ctx, nil, "exec", node, "sh", "-c", "tail -n 40 /var/log/pods/*/*/*.log; journalctl -u kubelet --no-pager | tail -n 40")
			t.Log(node + ":\n" + logs)
		}
		t.Fatalf("make a cluster with the operators' files: %v", err)
	}
	admin, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(t, err)
	return nodes, admin
}

// operatorsCluster is kind's configuration. Everything about the sidecar is copied unchanged from
// the operators' files.
func operatorsCluster(t *testing.T, dir, name string) []byte {
	t.Helper()
	absolute, err := filepath.Abs(operatorFiles)
	must(t, err)
	kubeadm, err := os.ReadFile(filepath.Join(absolute, "reference.yaml"))
	must(t, err)
	versions := []string{newPair.from, newPair.to}
	var b strings.Builder
	fmt.Fprintf(&b, "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nname: %s\nnetworking: {disableDefaultCNI: true, kubeProxyMode: none}\n", name)
	fmt.Fprintf(&b, "kubeadmConfigPatches:\n- |\n%s", indented(string(kubeadm)))
	b.WriteString("- |\n  kind: InitConfiguration\n  skipPhases: [preflight, addon/kube-proxy, addon/coredns]\n  timeouts: {kubernetesAPICall: 4m0s}\n" +
		"- |\n  kind: JoinConfiguration\n  timeouts: {kubernetesAPICall: 4m0s, tlsBootstrap: 8m0s}\n" +
		"- |\n  kind: KubeletConfiguration\n  failCgroupV1: false\nnodes:\n")
	for i, version := range []string{newPair.to, newPair.from} {
		patches := filepath.Join(dir, fmt.Sprint("patches", i))
		must(t, os.Mkdir(patches, 0o755))
		must(t, os.CopyFS(patches, os.DirFS(filepath.Join(absolute, "patches"))))
		must(t, os.WriteFile(filepath.Join(patches, "kube-apiserver1+json.yaml"),
			[]byte("- {op: replace, path: /spec/containers/0/image, value: 'registry.k8s.io/kube-apiserver:"+version+"'}\n"), 0o644))
		fmt.Fprintf(&b, "- role: control-plane\n  image: %s\n  extraMounts:\n", kind.ImageName(versions))
		fmt.Fprintf(&b, "  - {hostPath: %s, containerPath: /patches, readOnly: true}\n", patches)
		fmt.Fprintf(&b, "  - {hostPath: %s, containerPath: /etc/kubernetes/manifests/skewproof-proxy.yaml, readOnly: true}\n",
			filepath.Join(absolute, "skewproof-proxy.yaml"))
		b.WriteString("  kubeadmConfigPatches:\n  - |\n    kind: InitConfiguration\n    patches: {directory: /patches}\n" +
			"  - |\n    kind: JoinConfiguration\n    patches: {directory: /patches}\n")
	}
	return []byte(b.String())
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ") + "\n"
}

// load waits until the containerd of a node runs, and loads the sidecar's image into it.
func load(ctx context.Context, t *testing.T, node, image string) {
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
