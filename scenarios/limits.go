package scenarios

import "github.com/skewproof/skewproof/internal/scenario"

// notOnNodes is for scenarios that give a server certificates, authorities or addresses of its own. What a kind cluster can do is for its own package to
// say; a test holds the catalogue to that.
var notOnNodes = scenario.Limits{
	Backends: []string{scenario.BackendLocal, scenario.BackendSim},
	Reason: "because the certificates, authorities and addresses of a kind node are not for its peers alone: its kubelet, its etcd member and the " +
		"load balancer depend on them too",
}
