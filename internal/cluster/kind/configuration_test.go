package kind

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/scenario"
)

func mixed(subject string, versions ...string) *Configuration {
	c := &Configuration{Name: "skewproof-x", Image: ImageName(versions), Subject: subject, Files: "/run/files", Names: []string{"172.18.0.1"}}
	for _, v := range versions {
		c.Nodes = append(c.Nodes, Node{Version: v})
	}
	return c
}

func parsed(t *testing.T, c *Configuration) v1alpha4.Cluster {
	t.Helper()
	content, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	var cluster v1alpha4.Cluster
	if err := yaml.UnmarshalStrict(content, &cluster); err != nil {
		t.Fatalf("%v in\n%s", err, content)
	}
	return cluster
}

// patchOf finds the one patch of a kind of object among patches, as data.
func patchOf(t *testing.T, patches []string, kind string) map[string]any {
	t.Helper()
	for _, p := range patches {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(p), &object); err != nil {
			t.Fatalf("%v in\n%s", err, p)
		}
		if object["kind"] == kind {
			return object
		}
	}
	t.Fatalf("no patch of %s", kind)
	return nil
}

// kubeadm starts every kube-apiserver at the version of the cluster. Only its own directory of
// patches makes a node differ.
func TestEveryNodeHasThePatchesOfItsVersion(t *testing.T) {
	c := mixed(scenario.SubjectBuiltin, "v1.37.1", "v1.36.3", "v1.36.3")
	cluster := parsed(t, c)
	tree := c.Tree()
	for i, n := range cluster.Nodes {
		if n.Image != "skewproof/node:v1.36.3_v1.37.1" {
			t.Errorf("node %d has the image %s", i, n.Image)
		}
		for _, kind := range []string{"InitConfiguration", "JoinConfiguration"} {
			dir := patchOf(t, n.KubeadmConfigPatches, kind)["patches"].(map[string]any)["directory"].(string)
			patch := tree[filepath.Join(strings.TrimPrefix(dir, filesDir+"/"), "kube-apiserver0+strategic.yaml")]
			if want := "registry.k8s.io/kube-apiserver:" + c.Nodes[i].Version + "\n"; !strings.Contains(patch, want) {
				t.Errorf("node %d, %s: the patch in %s does not set the image %s:\n%s", i, kind, dir, want, patch)
			}
		}
	}
}

// The form of extraArgs differs between the versions of kubeadm's configuration; in the wrong one
// kubeadm refuses all of it.
func TestExtraArgsHaveTheFormOfKubeadmsVersion(t *testing.T) {
	for oldest, api := range map[string]string{"v1.35.4": "v1beta3", "v1.36.3": "v1beta4"} {
		cluster := parsed(t, mixed(scenario.SubjectBuiltin, "v1.37.1", oldest))
		object := patchOf(t, cluster.KubeadmConfigPatches, "ClusterConfiguration")
		if object["apiVersion"] != "kubeadm.k8s.io/"+api {
			t.Errorf("oldest %s: %v, want %s", oldest, object["apiVersion"], api)
		}
		switch args := object["apiServer"].(map[string]any)["extraArgs"].(type) {
		case map[string]any:
			if api != "v1beta3" || args["peer-ca-file"] != "/etc/kubernetes/pki/ca.crt" {
				t.Errorf("oldest %s: %v", oldest, args)
			}
		case []any:
			if api != "v1beta4" || args[len(args)-1].(map[string]any)["name"] != "peer-ca-file" {
				t.Errorf("oldest %s: %v", oldest, args)
			}
		}
	}
}

// The image may hold an older version than any that runs: its kubeadm counts. kind ignores a patch
// of another version of kubeadm's configuration.
func TestKubeadmIsOfTheOldestVersionInTheImage(t *testing.T) {
	c := mixed(scenario.SubjectBuiltin, "v1.37.1", "v1.36.3")
	c.Image = ImageName([]string{"v1.37.1", "v1.36.3", "v1.35.4"})
	if c.Oldest() != "v1.35.4" || c.KubeadmAPI() != "v1beta3" {
		t.Errorf("oldest %s, %s", c.Oldest(), c.KubeadmAPI())
	}
	c.Image = "kindest/node:latest"
	if c.Oldest() != "v1.36.3" {
		t.Errorf("oldest %s of an image without that label", c.Oldest())
	}
}

// Without our address in it no client accepts the serving certificate of a server that it reaches
// through the fabric.
func TestServingCertificatesHoldForOurAddress(t *testing.T) {
	sans := patchOf(t, parsed(t, mixed(scenario.SubjectNone, "v1.36.3")).KubeadmConfigPatches, "ClusterConfiguration")["apiServer"].(map[string]any)["certSANs"]
	if got := sans.([]any); len(got) != 3 || got[2] != "172.18.0.1" {
		t.Errorf("names %v, want ours among them", got)
	}
}

// A newer kind may want another image for its load balancer, which then would be pulled.
func TestTheLoadBalancerIsTheOneThatKindWants(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kind").Output()
	if err != nil {
		t.Skipf("where the source of kind is: %v", err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "pkg/cluster/internal/loadbalancer/const.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(source), `const Image = "`+LoadBalancerImage+`"`) {
		t.Errorf("kind wants another image than %s:\n%s", LoadBalancerImage, source)
	}
}

func TestUnknownSubjectIsNamed(t *testing.T) {
	_, err := mixed("alpha", "v1.36.3").YAML()
	if err == nil || !strings.Contains(err.Error(), `subject "alpha"`) {
		t.Errorf("error %v, want one that names the subject", err)
	}
}
