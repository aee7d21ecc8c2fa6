// Package kindconfigs holds configurations of kind clusters whose kube-apiservers run different
// versions. People can read, use and copy them. The code with which 'skewproof run --backend kind'
// makes its clusters writes those outside kubeadm: 'go test ./kindconfigs -update' writes them
// again.
package kindconfigs

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/cluster/kind"
	"github.com/skewproof/skewproof/internal/scenario"
)

// The versions of the examples, and where in the checkout the nodes' files are. kind takes relative
// paths from where it is called.
const (
	v135, v136, v137 = "v1.35.4", "v1.36.3", "v1.37.1"
	nodeFiles        = "kindconfigs/files"
)

type example struct {
	file          string
	title         []string
	configuration kind.Configuration
}

func examples() []example {
	nodes := func(versions ...string) (all []kind.Node) {
		for _, v := range versions {
			all = append(all, kind.Node{Version: v})
		}
		return all
	}
	return []example{
		{"ha-1.36.yaml", []string{
			"Three control-plane nodes, all kube-apiservers v1.36, with the Mixed Version Proxy of KEP-4020 (on by default in this version) in full:",
			"kubeadm gives a kube-apiserver no --peer-ca-file.",
		}, kind.Configuration{Subject: scenario.SubjectBuiltin, Nodes: nodes(v136, v136, v136)}},
		{"ha-1.36-1.37-mixed.yaml", []string{
			"A rolling upgrade that stands still: the first kube-apiserver is v1.37 already, the others are v1.36. Kubelets, controllers and kubeadm are",
			"v1.36 everywhere, as in an upgrade. Ask any server for what only the first one has (kubectl get --raw",
			"/apis/resource.k8s.io/v1/devicetaintrules): it answers.",
		}, kind.Configuration{Subject: scenario.SubjectBuiltin, Nodes: nodes(v137, v136, v136)}},
		{"ha-three-versions.yaml", []string{
			"Three versions at once. An upgrade should never get here, but an interrupted one that is taken up again by the next does.",
		}, kind.Configuration{Subject: scenario.SubjectBuiltin, Nodes: nodes(v135, v136, v137)}},
		{"ha-reference.yaml", []string{
			"The reference proxy of this project, inside the kube-apiservers, in place of their own.",
		}, kind.Configuration{Subject: scenario.SubjectReference, Nodes: nodes(v137, v136, v136)}},
		{"compat.yaml", []string{
			"Compatibility versions (KEP-4330): the first kube-apiserver is v1.37 and behaves like v1.36. In such an upgrade all binaries are replaced first,",
			"and only then does any of them serve something new; until then versions differ and resources do not.",
		}, kind.Configuration{Subject: scenario.SubjectBuiltin, Nodes: []kind.Node{{Version: v137, Emulates: "1.36"}, {Version: v136}, {Version: v136}}}},
	}
}

// Files returns every generated file, by its path below this directory.
func Files() (map[string]string, error) {
	files := map[string]string{}
	for _, e := range examples() {
		c := e.configuration
		var versions []string
		for _, n := range c.Nodes {
			versions = append(versions, n.Version)
		}
		c.Image, c.Files = kind.ImageName(versions), nodeFiles
		semver.Sort(versions)
		c.Title = append(e.title, "", "  make kind-images VERSIONS=\""+strings.Join(slices.Compact(versions), " ")+"\"",
			"  kind create cluster --config kindconfigs/"+e.file)
		yaml, err := c.YAML()
		if err != nil {
			return nil, err
		}
		files[e.file] = string(yaml)
		for name, content := range c.Tree() {
			files[path.Join("files", name)] = content
		}
	}
	return files, nil
}
