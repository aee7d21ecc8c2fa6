// Package kind runs a control plane of several versions as a kind cluster: every server is a node
// with an etcd member, a kubelet and the static pods that kubeadm makes, on a Docker network of the
// run's own. kind's Go package makes the cluster; servers are stopped, started and replaced as an
// operator would, by their static-pod manifests.
package kind

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
	"github.com/skewproof/skewproof/internal/history"
)

// Prefix begins the names of the cluster, the nodes and the network of a run.
const Prefix = "skewproof-"

// MaxServers is the largest useful number of etcd members: more make etcd slower and not safer.
const MaxServers = 7

const (
	// securePort is the port of a node that the load balancer, kubelets, controllers and peers
	// dial.
	securePort = 6443
	// etcdPort is the port of a node's etcd member, which the node's kube-apiserver dials.
	etcdPort = 2379
)

// Place is where a server lives.
type Place struct {
	Name string // of the server
	Node string // the container, which is the host name too
	ID   string // the apiserver identity: the name of its identity lease
}

// NewName returns a name for a cluster that no other run has.
func NewName() (string, error) {
	random := make([]byte, 4)
	if _, err := rand.Read(random); err != nil {
		return "", fmt.Errorf("name the cluster: %w", err)
	}
	return Prefix + hex.EncodeToString(random), nil
}

// Places returns where each server will live, in order. kind names the nodes so: the first has no
// number, the second has 2.
// Source: MakeNodeNamer in sigs.k8s.io/kind/pkg/cluster/internal/providers/common/namer.go.
func Places(cluster string, servers []history.Server) []Place {
	places := make([]Place, len(servers))
	for i, s := range servers {
		node := cluster + "-control-plane"
		if i > 0 {
			node += fmt.Sprint(i + 1)
		}
		places[i] = Place{Name: s.Name, Node: node, ID: lifecycle.Identity(node)}
	}
	return places
}

// ours reports whether a run made a cluster or network. A run never touches others.
func ours(name string) bool { return strings.HasPrefix(name, Prefix) }
