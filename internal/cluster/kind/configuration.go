package kind

import (
	"bytes"
	_ "embed" // the template
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/scenario"
)

// Configuration is a cluster to be made, before kind knows of it. It renders to the files that kind and kubeadm read; the examples in
// kindconfigs are such files.
type Configuration struct {
	Title   []string // lines of comment at the top
	Name    string   // of the cluster; empty leaves it to kind
	Image   string   // of every node: it holds the kube-apiservers of all versions, and all else of the oldest
	Subject string
	Nodes   []Node
	// Files is the directory on this machine that the nodes see as their files: see [Configuration.Render].
	Files string
	// Proxy is the reference proxy's executable on this machine, linked statically; for subject reference only.
	Proxy string
	// ProxyManifest is a file on this machine with the sidecar's static pod. Empty if somebody else puts it into the nodes.
	ProxyManifest string
	// Names are further names and addresses that the serving certificates hold for.
	Names []string
}

// Node is a control-plane node of a configuration.
type Node struct {
	Version string // of its kube-apiserver
	// Emulates is the minor version, such as "1.36", that its kube-apiserver is told to behave like (KEP-4330); empty for its own.
	Emulates string
	// Setup is how the server is set up other than the subject says; nil: not at all. See [CheckSetup].
	Setup *scenario.Setup
}

// PatchDir is the directory of patches for a node's static pods.
func (c *Configuration) PatchDir(n Node) string {
	dir := n.Version
	if n.Emulates != "" {
		dir += "-as-" + n.Emulates
	}
	if configured(c.Subject, n.Setup) == scenario.SubjectReference {
		dir += "-behind-proxy"
	}
	if n.Setup != nil {
		dir += "-with-" + strings.ReplaceAll(n.Setup.String(), " ", "-")
	}
	return dir
}

//go:embed cluster.yaml.tmpl
var clusterTemplate string

var clusterYAML = template.Must(template.New("cluster").Funcs(template.FuncMap{
	"join": strings.Join,
	"lines": func(s string) []string {
		if s == "" {
			return nil
		}
		return strings.Split(s, "\n")
	},
}).Parse(clusterTemplate))

// Oldest is the oldest version in the image, as its tag tells: that of kubeadm, kubelets and controllers. Of an image with another kind of tag it
// is taken to be that of the nodes.
func (c *Configuration) Oldest() string {
	_, tag, _ := strings.Cut(c.Image, ":")
	versions := strings.Split(tag, "_")
	if slices.ContainsFunc(versions, func(v string) bool { return !semver.IsValid(v) }) {
		versions = nil
		for _, n := range c.Nodes {
			versions = append(versions, n.Version)
		}
	}
	semver.Sort(versions)
	return versions[0]
}

// VersionList is each version of the nodes once, the oldest first, with spaces between them.
func (c *Configuration) VersionList() string {
	var versions []string
	for _, n := range c.Nodes {
		versions = append(versions, n.Version)
	}
	semver.Sort(versions)
	return strings.Join(slices.Compact(versions), " ")
}

// KubeadmAPI is the version of kubeadm's configuration that kind writes for the oldest version. Patches have to be of the same, since the form of
// extraArgs differs. Source: Config in sigs.k8s.io/kind/pkg/cluster/internal/kubeadm/config.go.
func (c *Configuration) KubeadmAPI() string {
	if semver.Compare(c.Oldest(), "v1.36.0") < 0 {
		return "v1beta3"
	}
	return "v1beta4"
}

// SANs replace those that kind sets, so they have to name these too.
func (c *Configuration) SANs() []string {
	return append([]string{"localhost", "127.0.0.1"}, c.Names...)
}

// What the template needs beside the fields.
type rendered struct {
	*Configuration
	Arguments                                             []Argument
	FilesDir, RecordsDir, ProxyProgram, ProxyManifestPath string
}

func (c *Configuration) rendered() (rendered, error) {
	arguments, err := c.arguments()
	return rendered{c, arguments, filesDir, recordsDir, proxyProgram, manifestsDir + "/" + proxyPod + ".yaml"}, err
}

// arguments are those that all kube-apiservers have. What only some have is in their patches.
func (c *Configuration) arguments() ([]Argument, error) {
	common, err := APIServerArguments(c.Oldest(), c.Subject, c.Nodes[0].Setup)
	for _, n := range c.Nodes[1:] {
		all, failed := APIServerArguments(c.Oldest(), c.Subject, n.Setup)
		err = errors.Join(err, failed)
		common = slices.DeleteFunc(common, func(a Argument) bool { return !slices.Contains(all, a) })
	}
	return common, err
}

// YAML is the cluster as kind reads it.
func (c *Configuration) YAML() ([]byte, error) {
	r, err := c.rendered()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := clusterYAML.Execute(&b, r); err != nil {
		return nil, fmt.Errorf("write the configuration of the cluster: %w", err)
	}
	return append(bytes.TrimSpace(b.Bytes()), '\n'), nil
}

// ExtraArgs is what an operator with a cluster of their own would put into kubeadm's configuration.
func (c *Configuration) ExtraArgs() ([]byte, error) {
	r, err := c.rendered()
	if err != nil {
		return nil, err
	}
	r.Arguments = slices.DeleteFunc(r.Arguments, func(a Argument) bool { return a.Observing })
	var b bytes.Buffer
	for _, line := range c.Title {
		fmt.Fprintf(&b, "# %s\n", line)
	}
	fmt.Fprintf(&b, "kind: ClusterConfiguration\napiVersion: kubeadm.k8s.io/%s\napiServer:\n      extraArgs:", c.KubeadmAPI())
	if err := clusterYAML.ExecuteTemplate(&b, "arguments", r); err != nil {
		return nil, fmt.Errorf("write kubeadm's configuration: %w", err)
	}
	return []byte(strings.ReplaceAll(b.String(), "\n      ", "\n  ") + "\n"), nil
}

// Tree is what the directory of files holds, by path below it: the audit policy, and kubeadm's patches for each node.
func (c *Configuration) Tree() map[string]string {
	tree := map[string]string{"audit-policy.yaml": policy}
	for _, n := range c.Nodes {
		dir := filepath.Join("patches", c.PatchDir(n))
		tree[filepath.Join(dir, "kube-apiserver0+strategic.yaml")] = c.podPatch(n)
		if lines := c.argumentPatch(n); lines != "" {
			tree[filepath.Join(dir, "kube-apiserver2+json.yaml")] = lines
		}
		if n.Emulates != "" {
			tree[filepath.Join(dir, "kube-apiserver1+json.yaml")] =
				"# This kube-apiserver behaves like an older one (KEP-4330): the first half of an upgrade that can be taken back.\n" +
					"- {op: add, path: /spec/containers/0/command/-, value: --emulated-version=" + n.Emulates + "}\n"
		}
	}
	return tree
}

// podPatch makes kubeadm's static pod that of the node: its version, and with a sidecar in front the port that it is probed at.
func (c *Configuration) podPatch(n Node) string {
	patch := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: kube-apiserver\n  namespace: kube-system\nspec:\n  containers:\n" +
		"    - name: kube-apiserver\n      image: " + apiserverImage(n.Version) + "\n"
	if configured(c.Subject, n.Setup) == scenario.SubjectReference {
		for _, probe := range []string{"startupProbe", "readinessProbe", "livenessProbe"} {
			patch += "      " + probe + ": {httpGet: {port: " + strconv.Itoa(behindPort) + "}}\n"
		}
	}
	return patch
}

// argumentPatch adds the arguments that a node has and others do not; "" if there are none. [Configuration.YAML] says what is wrong with them.
func (c *Configuration) argumentPatch(n Node) (lines string) {
	common, _ := c.arguments()
	all, _ := APIServerArguments(c.Oldest(), c.Subject, n.Setup)
	for _, a := range all {
		if !slices.Contains(common, a) {
			lines += "- {op: add, path: /spec/containers/0/command/-, value: --" + a.Name + "=" + a.Value + "}\n"
		}
	}
	return lines
}

// Every request at metadata level, but not twice: who served what is all that is asked of the log.
const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [ResponseStarted]\nrules:\n- level: Metadata\n"

// apiserverImage is the image of a version. It lies in the nodes already; nothing is pulled.
func apiserverImage(version string) string { return "registry.k8s.io/kube-apiserver:" + version }
