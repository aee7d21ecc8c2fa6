package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/skewproof/skewproof/internal/cluster/kind"
)

// askers is the name of the pods that ask, and of the client before the load balancer.
const askers = "askers"

// askedAnswer is a line of the log of "inpod ask".
type askedAnswer struct {
	At     time.Time `json:"at"`
	Path   string    `json:"path"`
	Status int       `json:"status"` // 0: none
	Lost   bool      `json:"lost"`   // the connection was refused, or broke, or the server was silent
	Error  string    `json:"error"`
}

// startAsking starts a client that asks through the load balancer, and a pod on each node that asks
// through the kubernetes Service. Each sends ten requests a second, half of them on new
// connections: the others stay at one server until it restarts. stop returns what each was
// answered.
func (c *operatorsCluster) startAsking(ctx context.Context, t *testing.T) (stop func() map[string][]askedAnswer) {
	t.Helper()
	var paths []string
	for path := range asked {
		paths = append(paths, path)
	}
	arguments := append([]string{"ask"}, paths...)
	front := c.startFrontClient(ctx, t, arguments)
	for _, node := range c.nodes {
		startKubeProxy(ctx, t, node)
	}
	_, err := c.admin.AppsV1().DaemonSets(metav1.NamespaceSystem).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: askers},
		Spec:       appsv1.DaemonSetSpec{Selector: labelled(askers), Template: podTemplate(askers, corev1.RestartPolicyAlways, arguments...)},
	}, metav1.CreateOptions{})
	must(t, err)
	for _, node := range c.nodes {
		eventually(t, "the pod on "+node+" gets answers through the kubernetes Service", 2*time.Minute, func() bool {
			return slices.ContainsFunc(podAnswers(ctx, t, node), func(a askedAnswer) bool { return a.Status == http.StatusOK })
		})
	}
	return func() map[string][]askedAnswer {
		all := map[string][]askedAnswer{"the client of the load balancer": front()}
		for _, node := range c.nodes {
			all["the pod on "+node] = podAnswers(ctx, t, node)
		}
		pods, err := c.admin.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "app=" + askers})
		must(t, err)
		for _, pod := range pods.Items {
			if n := restarts(pod); n > 0 {
				t.Errorf("pod %s: its container was restarted %d times", pod.Name, n)
			}
		}
		if len(pods.Items) != len(c.nodes) {
			t.Errorf("%d pods ask, want %d", len(pods.Items), len(c.nodes))
		}
		return all
	}
}

// startKubeProxy runs kube-proxy on a node, which kubeadm would run in a pod. Its image is the only
// thing that is missing for that.
func startKubeProxy(ctx context.Context, t *testing.T, node string) {
	t.Helper()
	_, err := kind.Docker(ctx, nil, "exec", node, "systemd-run", "--unit=kube-proxy", "--property=Restart=always",
		"kube-proxy", "--kubeconfig=/etc/kubernetes/admin.conf", "--hostname-override="+node,
		// The kernel's table of connections is the machine's, not the node's.
		"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0")
	if err != nil {
		t.Fatalf("start kube-proxy on %s: %v (node images of before: 'make kind-images' makes them anew)", node, err)
	}
}

// podAnswers reads the log of the pod that asks on a node, from the node itself.
func podAnswers(ctx context.Context, t *testing.T, node string) []askedAnswer {
	t.Helper()
	log, _ := kind.Docker(ctx, nil, "exec", node, "sh", "-c", "cat /var/log/pods/kube-system_"+askers+"-*/*/*.log")
	var lines strings.Builder
	for line := range strings.Lines(log) {
		if _, text, ok := strings.Cut(line, " F "); ok { // containerd's: time, stream, and F for a full line
			lines.WriteString(text)
		}
	}
	return readAnswers(t, []byte(lines.String()))
}

// readAnswers ignores a last line that is not whole yet.
func readAnswers(t *testing.T, log []byte) (all []askedAnswer) {
	t.Helper()
	for line := range bytes.Lines(log) {
		var a askedAnswer
		if !bytes.HasSuffix(bytes.TrimSpace(line), []byte("}")) {
			continue
		}
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, a)
	}
	return all
}

// startFrontClient starts the program of the pods on this machine, as the administrator.
func (c *operatorsCluster) startFrontClient(ctx context.Context, t *testing.T, arguments []string) (stop func() []askedAnswer) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "inpod")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "../../kindconfigs/image/inpod").CombinedOutput(); err != nil {
		t.Fatalf("build the client: %v\n%s", err, out)
	}
	var out, printed bytes.Buffer
	cmd := exec.CommandContext(ctx, program, arguments...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	cmd.Stdout, cmd.Stderr = &out, &printed
	must(t, cmd.Start())
	end := sync.OnceValue(func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		return cmd.Wait()
	})
	t.Cleanup(func() { _ = end() })
	return func() []askedAnswer {
		if err := end(); err != nil {
			t.Fatalf("the client of the load balancer: %v\n%s", err, &printed)
		}
		return readAnswers(t, out.Bytes())
	}
}

// nodeAddress returns the address of a node, at which its kube-apiserver or its sidecar listens.
func nodeAddress(ctx context.Context, t *testing.T, admin *kubernetes.Clientset, name string) string {
	t.Helper()
	node, err := admin.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	must(t, err)
	i := slices.IndexFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP })
	if i < 0 {
		t.Fatalf("node %s has no address", name)
	}
	return node.Status.Addresses[i].Address
}
