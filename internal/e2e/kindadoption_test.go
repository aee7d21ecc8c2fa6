package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/cluster/kind"
)

// Where the document has operators put their files on a node.
const (
	nodeFilesDir   = "etc/kubernetes/skewproof"
	nodePatchesDir = "etc/kubernetes/patches"
	nodeManifests  = "etc/kubernetes/manifests"
)

// sidecarScript, in [operatorFiles], adds a sidecar to a node or removes it.
const (
	sidecarScript = "sidecar.sh"
	addSidecar    = "add"
	removeSidecar = "remove"
)

// By the operators' script, sidecars are added to a control plane that kubeadm has made
// without, and removed again, node by node. Clients notice only that their own server restarts.
func TestAdoptionOnKind(t *testing.T) {
	needsKind(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	c := startOperatorsCluster(ctx, t, false)
	newer, older := 0, 1
	c.withoutSidecars(ctx, t)
	answers := c.startAsking(ctx, t)

	setArguments(ctx, t, c.admin, true)
	during := []disturbance{onNode(ctx, t, c.nodes[older], addSidecar)}
	c.onlyOn(ctx, t, older)
	during = append(during, onNode(ctx, t, c.nodes[newer], addSidecar))
	c.adopted(ctx, t)

	setArguments(ctx, t, c.admin, false)
	during = append(during, onNode(ctx, t, c.nodes[newer], removeSidecar))
	c.onlyOn(ctx, t, older)
	during = append(during, onNode(ctx, t, c.nodes[older], removeSidecar))
	c.withoutSidecars(ctx, t)
	judgeAsking(t, answers(), during)
}

// onlyOn checks that the one sidecar, on node i, asks the other kube-apiserver itself.
func (c *operatorsCluster) onlyOn(ctx context.Context, t *testing.T, i int) {
	t.Helper()
	peersAre(ctx, t, c.nodes[i], 0, 1)
	c.servesNewer(ctx, t, i)
}

// The operators' script is a valid one, which is known before a cluster is made. It does nothing
// unless it is told what to do.
func TestSidecarScript(t *testing.T) {
	script := filepath.Join(operatorFiles, sidecarScript)
	if out, err := exec.CommandContext(t.Context(), "bash", "-n", script).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), "bash", script, "keep").CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 4 || !strings.HasPrefix(string(out), "usage: ") {
		t.Errorf("told to keep it: %v\n%s", err, out)
	}
}

// onNode runs the operators' script on a node, as root.
func onNode(ctx context.Context, t *testing.T, node, what string) disturbance {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	d := disturbance{what: fmt.Sprintf("%s a sidecar on %s", what, node), start: time.Now()}
	if _, err := kind.Docker(ctx, nil, "exec", node, "bash", "/"+nodeFilesDir+"/"+sidecarScript, what); err != nil {
		tellNode(t, node)
		t.Fatalf("%s: %v", d.what, err)
	}
	d.end = time.Now()
	t.Logf("%s took %s", d.what, d.end.Sub(d.start).Round(time.Second))
	return d
}

// tellNode logs what a node says of itself.
func tellNode(t *testing.T, node string) {
	logs, _ := kind.Docker(context.WithoutCancel(t.Context()), nil, "exec", node, "sh", "-c",
		"ss -Hltnp 'sport = :6443'; tail -n 40 /var/log/pods/*/*/*.log; journalctl -u kubelet --no-pager | tail -n 40")
	t.Log(node + ":\n" + logs)
}

// nodeFiles returns the files that the document puts on a node, as a tar archive: before its first
// step or, with a sidecar, after the last one. patch, which chooses the node's version, replaces
// the operator's own patch.
func nodeFiles(t *testing.T, patch string, sidecar bool) []byte {
	t.Helper()
	tree := fstest.MapFS{nodePatchesDir + "/kube-apiserver1+json.yaml": {Data: []byte(patch), Mode: 0o644}}
	operators := os.DirFS(operatorFiles)
	must(t, fs.WalkDir(operators, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(operators, name)
		tree[nodeFilesDir+"/"+name] = &fstest.MapFile{Data: content, Mode: 0o644}
		switch {
		case !sidecar:
		case strings.HasPrefix(name, "patches/"):
			tree[nodePatchesDir+"/"+filepath.Base(name)] = tree[nodeFilesDir+"/"+name]
		case name == "skewproof-proxy.yaml":
			tree[nodeManifests+"/"+name] = tree[nodeFilesDir+"/"+name]
		}
		return err
	}))
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	must(t, w.AddFS(tree))
	must(t, w.Close())
	return archive.Bytes()
}

// setArguments adds the operators' arguments to kubeadm's configuration in the cluster, or takes
// them out.
func setArguments(ctx context.Context, t *testing.T, admin *kubernetes.Clientset, wanted bool) {
	t.Helper()
	own := readReference(t)
	stored, err := admin.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{})
	must(t, err)
	var configuration map[string]any
	must(t, yaml.Unmarshal([]byte(stored.Data["ClusterConfiguration"]), &configuration))
	server := configuration["apiServer"].(map[string]any)
	arguments, _ := server["extraArgs"].([]any)
	arguments = slices.DeleteFunc(arguments, func(have any) bool {
		return slices.ContainsFunc(own, func(a map[string]any) bool { return a["name"] == have.(map[string]any)["name"] })
	})
	if wanted {
		for _, a := range own {
			arguments = append(arguments, a)
		}
	}
	server["extraArgs"] = arguments
	text, err := yaml.Marshal(configuration)
	must(t, err)
	stored.Data["ClusterConfiguration"] = string(text)
	_, err = admin.CoreV1().ConfigMaps(metav1.NamespaceSystem).Update(ctx, stored, metav1.UpdateOptions{})
	must(t, err)
}

// readReference returns the arguments in the operators' reference.yaml.
func readReference(t *testing.T) []map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(operatorFiles, "reference.yaml"))
	must(t, err)
	var c struct {
		APIServer struct {
			ExtraArgs []map[string]any `json:"extraArgs"`
		} `json:"apiServer"`
	}
	must(t, yaml.Unmarshal(text, &c))
	if len(c.APIServer.ExtraArgs) == 0 {
		t.Fatal("reference.yaml has no arguments")
	}
	return c.APIServer.ExtraArgs
}

// peersAre waits until a node's sidecar reaches so many peers by their proxies and so many
// directly, and knows the addresses of all.
func peersAre(ctx context.Context, t *testing.T, node string, proxied, direct int) {
	t.Helper()
	eventually(t, fmt.Sprintf("the metrics of the sidecar on %s have %d peers with a proxy, %d without", node, proxied, direct), time.Minute, func() bool {
		metrics, err := kind.Docker(ctx, nil, "exec", node, "curl", "-s", "127.0.0.1:6440/metrics")
		lines := strings.Split(metrics, "\n")
		return err == nil && slices.Contains(lines, fmt.Sprintf(`skewproof_proxy_peers{reached="proxied"} %d`, proxied)) &&
			slices.Contains(lines, fmt.Sprintf(`skewproof_proxy_peers{reached="direct"} %d`, direct)) &&
			slices.Contains(lines, `skewproof_proxy_peers{reached="unknown"} 0`)
	})
}

// adopted checks that in-cluster clients reach a sidecar at every endpoint of the kubernetes
// Service, which knows that all peers have one.
func (c *operatorsCluster) adopted(ctx context.Context, t *testing.T) {
	t.Helper()
	for i, node := range c.nodes {
		peersAre(ctx, t, node, 1, 0)
		c.servesNewer(ctx, t, i)
		for _, everywhere := range []string{"*:6443", "0.0.0.0:6443", "[::]:6443"} {
			if strings.Contains(listeners(ctx, t, node), everywhere) {
				t.Errorf("something listens on all addresses of %s at port 6443: clients can bypass the sidecar", node)
			}
		}
	}
}

// servesNewer checks that an in-cluster client gets a resource that only the newer kube-apiserver
// serves, at the endpoint of node i.
func (c *operatorsCluster) servesNewer(ctx context.Context, t *testing.T, i int) {
	t.Helper()
	client := as(t, c.pod, c.endpoints[i])
	eventually(t, "an in-cluster client of "+c.endpoints[i]+" gets a resource that only the newer kube-apiserver serves", time.Minute, func() bool {
		_, err := client.Discovery().RESTClient().Get().AbsPath(onlyNewer).DoRaw(ctx)
		return err == nil
	})
	for range 20 {
		if _, err := client.Discovery().RESTClient().Get().AbsPath(onlyNewer).DoRaw(ctx); err != nil {
			t.Errorf("an in-cluster client asks %s for %s: %v", c.endpoints[i], onlyNewer, err)
		}
	}
}

// withoutSidecars checks that nothing is left of the sidecars: the endpoints of the kubernetes
// Service are the kube-apiservers' own, and the older one answers 404 for a resource of the newer
// one.
func (c *operatorsCluster) withoutSidecars(ctx context.Context, t *testing.T) {
	t.Helper()
	if now := serviceEndpoints(ctx, t, c.admin); !slices.Equal(now, slices.Sorted(slices.Values(c.endpoints))) {
		t.Errorf("the kubernetes Service has the endpoints %v, want %v", now, c.endpoints)
	}
	for _, node := range c.nodes {
		if all := listeners(ctx, t, node); strings.Count(all, "\n") != 0 || !strings.Contains(all, `*:6443`) || !strings.Contains(all, `"kube-apiserver"`) {
			t.Errorf("%s: want the kube-apiserver alone at port 6443, on all addresses; it has:\n%s", node, all)
		}
		manifest, err := kind.Docker(ctx, nil, "exec", node, "cat", "/"+nodeManifests+"/kube-apiserver.yaml")
		must(t, err)
		for _, a := range readReference(t) {
			if argument := fmt.Sprintf("--%s=%s", a["name"], a["value"]); strings.Contains(manifest, argument) {
				t.Errorf("%s: the kube-apiserver still has %s", node, argument)
			}
		}
		if strings.Contains(manifest, "host: 127.0.0.1") {
			t.Errorf("%s: the kube-apiserver is still probed on 127.0.0.1:\n%s", node, manifest)
		}
		eventually(t, "the sidecar's pod of "+node+" is gone", time.Minute, func() bool {
			_, err := c.admin.CoreV1().Pods(metav1.NamespaceSystem).Get(ctx, "skewproof-proxy-"+node, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
	if _, err := as(t, c.pod, c.endpoints[1]).Discovery().RESTClient().Get().AbsPath(onlyNewer).DoRaw(ctx); !apierrors.IsNotFound(err) {
		t.Errorf("the older kube-apiserver, without a sidecar, is asked for %s: %v, want 404", onlyNewer, err)
	}
}

// listeners are the sockets at port 6443 of a node, a line for each, with their programs.
func listeners(ctx context.Context, t *testing.T, node string) string {
	t.Helper()
	all, err := kind.Docker(ctx, nil, "exec", node, "ss", "-Hltnp", "sport = :6443")
	must(t, err)
	return all
}
