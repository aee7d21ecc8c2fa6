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

	"github.com/skewproof/skewproof/internal/cluster/requestlog"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Configuration describes a cluster. It renders to files for kind and kubeadm, such as those in
// kindconfigs.
type Configuration struct {
	Title   []string // lines of comment at the top
	Name    string   // of the cluster; empty leaves it to kind
	Image   string   // of every node: it has the kube-apiservers of all versions, and the other programs of the oldest one
	Subject string
	Nodes   []Node
	// Own are flags of the user's own for every kube-apiserver.
	Own history.OwnFlags
	// Files is the directory on this machine that is mounted in the nodes: [Configuration.Tree].
	Files string
	// Names are further names and addresses for the serving certificates.
	Names []string
}

// Node is a control-plane node of a configuration.
type Node struct {
	Version string // of its kube-apiserver
	// Emulates is the minor version, such as "1.36", that it emulates (KEP-4330); empty for its
	// own.
	Emulates string
	// Setup is the configuration of the server beside the subject's; nil: none. See [CheckSetup].
	Setup *scenario.Setup
}

// PatchDir is the directory of patches for a node's static pods.
func (c *Configuration) PatchDir(n Node) string {
	dir := n.Version
	if n.Emulates != "" {
		dir += "-as-" + n.Emulates
	}
	if c.Subject == scenario.SubjectReference {
		dir += "-reference"
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

// Oldest returns the oldest version in the image, according to the tag of the image. kubeadm,
// kubelets and controllers have this version. If the tag names no versions, Oldest returns the
// oldest version of the nodes.
func (c *Configuration) Oldest() string {
	_, tag, _ := strings.Cut(c.Image, ":")
	versions := strings.Split(tag, "_")
	if slices.ContainsFunc(versions, func(v string) bool { return !semver.IsValid(v) }) {
		versions = c.versions()
	}
	semver.Sort(versions)
	return versions[0]
}

func (c *Configuration) versions() []string {
	var versions []string
	for _, n := range c.Nodes {
		versions = append(versions, n.Version)
	}
	return versions
}

// KubeadmAPI is the version of kubeadm's configuration that kind writes for the oldest version.
// Patches must be of the same version: the form of extraArgs differs. Source: Config in
// sigs.k8s.io/kind/pkg/cluster/internal/kubeadm/config.go.
func (c *Configuration) KubeadmAPI() string {
	if semver.Compare(c.Oldest(), "v1.36.0") < 0 {
		return "v1beta3"
	}
	return "v1beta4"
}

// SANs returns the names for the serving certificates. They replace kind's, so they contain kind's.
func (c *Configuration) SANs() []string {
	return append([]string{"localhost", "127.0.0.1"}, c.Names...)
}

type rendered struct {
	*Configuration
	Arguments            []Argument
	FilesDir, RecordsDir string
}

func (c *Configuration) rendered() (rendered, error) {
	arguments, err := c.arguments()
	return rendered{c, arguments, filesDir, recordsDir}, err
}

// arguments returns the arguments that all kube-apiservers have. The others are in patches.
func (c *Configuration) arguments() ([]Argument, error) {
	common, err := APIServerArguments(c.Oldest(), c.Subject, c.Nodes[0].Setup, c.Own)
	for _, n := range c.Nodes[1:] {
		all, failed := APIServerArguments(c.Oldest(), c.Subject, n.Setup, c.Own)
		err = errors.Join(err, failed)
		common = slices.DeleteFunc(common, func(a Argument) bool { return !slices.Contains(all, a) })
	}
	return common, err
}

// YAML returns the configuration of the cluster in the form that kind reads.
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

// Tree returns the files to mount in the nodes, by path: the audit policy and kubeadm's patches.
func (c *Configuration) Tree() map[string]string {
	tree := map[string]string{"audit-policy.yaml": requestlog.AuditPolicy}
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

// podPatch sets the image of kubeadm's static pod.
func (c *Configuration) podPatch(n Node) string {
	return "apiVersion: v1\nkind: Pod\nmetadata:\n  name: kube-apiserver\n  namespace: kube-system\nspec:\n  containers:\n" +
		"    - name: kube-apiserver\n      image: " + apiserverImage(c.Subject, n.Version) + "\n"
}

// argumentPatch returns the patch with the arguments that only some nodes have. It is empty if
// there are none. [Configuration.YAML] returns the errors.
func (c *Configuration) argumentPatch(n Node) (lines string) {
	common, _ := c.arguments()
	all, _ := APIServerArguments(c.Oldest(), c.Subject, n.Setup, c.Own)
	for _, a := range all {
		if !slices.Contains(common, a) {
			lines += "- {op: add, path: /spec/containers/0/command/-, value: " + flowScalar("--"+a.Name+"="+a.Value) + "}\n"
		}
	}
	return lines
}

// flowScalar quotes a value that would otherwise not be one scalar in a flow mapping of YAML.
func flowScalar(value string) string {
	if strings.ContainsAny(value, " ,:{}[]\"'#&*!|>%@`\\") {
		return strconv.Quote(value)
	}
	return value
}

// apiserverImage returns the image of a version. The nodes have it, so nothing is pulled.
func apiserverImage(subject, version string) string {
	if subject == scenario.SubjectReference {
		return ReferenceImage + ":" + version
	}
	return "registry.k8s.io/kube-apiserver:" + version
}

// ReferenceImage is the image of kube-apiservers with the reference proxy, without the version. It
// is in every node image, and not published anywhere.
const ReferenceImage = "docker.io/skewproof/kube-apiserver-reference"
