package workload

import (
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// A kubelet is a user of its own kind: the node authorizer of the asked server decides what it may
// do, by rules that are compiled into the server.
const (
	// Node is the user of a kubelet. NodesGroup is the group of all kubelets.
	Node       = "system:node:" + nodeName
	NodesGroup = "system:nodes"
	nodeName   = "n1"
)

// kubelet are requests of a kubelet that need no pod on its node. Source: pkg/kubelet in
// k8s.io/kubernetes (read: v1.37.1).
var kubelet = slices.Concat(
	informer(history.GVR{Version: "v1", Resource: "services"}, ""),
	informer(history.GVR{Version: "v1", Resource: "pods"}, "fieldSelector=spec.nodeName%3D"+nodeName),
	informer(history.GVR{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers"}, ""),
	informer(history.GVR{Group: "node.k8s.io", Version: "v1", Resource: "runtimeclasses"}, ""),
	informer(history.GVR{Group: "certificates.k8s.io", Version: "v1", Resource: "clustertrustbundles"}, ""),
	informer(history.GVR{Group: "certificates.k8s.io", Version: "v1", Resource: "podcertificaterequests"},
		"fieldSelector=spec.nodeName%3D"+nodeName),
	[]Request{
		{Verb: "get", GVR: history.GVR{Version: "v1", Resource: "nodes"}, Name: nodeName},
		{Verb: "get", GVR: history.GVR{Group: "storage.k8s.io", Version: "v1", Resource: "csinodes"}, Name: nodeName},
		{Verb: "get", GVR: history.GVR{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, Namespace: "kube-node-lease", Name: nodeName},
	},
)

// informer are the requests of an informer.
func informer(of history.GVR, query string) []Request {
	return []Request{{Verb: "list", GVR: of, Query: query}, {Verb: "watch", GVR: of, Query: query}}
}

// AsNode reports whether a kubelet sends requests like this one.
func AsNode(r *Request) bool {
	return r.Subresource == "" && slices.ContainsFunc(kubelet, func(k Request) bool { return k.GVR == r.GVR && k.Verb == r.Verb })
}

// kubelets are the requests of a kubelet for what is served: by some servers, and by all.
type kubelets struct {
	some, all []Request
	turn      int
}

func (k *kubelets) use(probes []Probe) {
	k.some, k.all = nil, nil
	for _, p := range probes {
		for _, r := range kubelet {
			switch {
			case r.GVR != p.Resource.GVR || p.Subresource != "":
			case p.Class == Somewhere:
				k.some = append(k.some, r)
			case p.Class == Everywhere:
				k.all = append(k.all, r)
			}
		}
	}
}

// next returns the requests in turn. Every second one is for what only some servers serve.
func (k *kubelets) next() (Request, bool) {
	of, n := k.all, k.turn/2
	if k.turn%2 == 0 && len(k.some) > 0 || len(k.all) == 0 {
		of = k.some
	}
	k.turn++
	if len(of) == 0 {
		return Request{}, false
	}
	r := of[n%len(of)]
	r.User, r.Client = Node, ClientREST
	return r, true
}
