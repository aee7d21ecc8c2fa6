package upgrade

import (
	"fmt"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/cluster/kind"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
)

// node and old stand for the addresses of servers in commands.
const (
	node = "https://NODE:6443"
	old  = "https://OLD-NODE:6443"
)

// checklist lists the actions of an operator, in order.
func checklist(p reports.UpgradePlan, asked, then reports.PlanProtection) []reports.PlanStep {
	steps := []reports.PlanStep{{
		Title: "Find what uses the APIs that change.",
		Text: "Read from every server which deprecated APIs clients request. Compare the tables above with these APIs, and with what your charts and controllers request. " +
			"The servers also serve objects of a vanishing version in the other versions of their group.",
		Commands: []string{"kubectl --server " + node + " get --raw /metrics | grep '^apiserver_requested_deprecated_apis'"},
	}, {
		Title: "Make it possible to go back.",
		Text:  "Save etcd and the static-pod manifests of every control-plane node.",
		Commands: []string{
			"etcdctl --endpoints https://127.0.0.1:2379 --cacert /etc/kubernetes/pki/etcd/ca.crt --cert /etc/kubernetes/pki/etcd/server.crt \\",
			"  --key /etc/kubernetes/pki/etcd/server.key snapshot save before-upgrade.db",
			"cp -a /etc/kubernetes/manifests /root/manifests-" + p.From,
		},
	}}
	if file, why := switchOn(p, asked); why != "" && len(p.Appears)+len(p.Vanishes) > 0 {
		step := reports.PlanStep{Title: "Decide about the Mixed Version Proxy.", Text: why, File: file}
		if file != "" {
			step.Title = "Switch the Mixed Version Proxy on while all servers still run " + p.From + "."
			step.Commands = []string{
				"kubectl -n kube-system edit configmap kubeadm-config     # add the lines below to ClusterConfiguration, which upgrades read",
				"kubectl -n kube-system get configmap kubeadm-config -o jsonpath='{.data.ClusterConfiguration}' > kubeadm.yaml",
				"kubeadm init phase control-plane apiserver --config kubeadm.yaml     # on one control-plane node after the other",
			}
		}
		steps = append(steps, step)
	}
	steps = append(steps, reports.PlanStep{
		Title: "Check that every server has an identity of its own.",
		Text:  "There must be as many leases as servers, each renewed within the last 10 s. Fewer leases mean that two nodes share a host name (finding 15).",
		Commands: []string{
			"kubectl -n kube-system get leases -l apiserver.kubernetes.io/identity=kube-apiserver " +
				"-o custom-columns=NAME:.metadata.name,HOST:.metadata.labels.kubernetes\\\\.io/hostname,RENEWED:.spec.renewTime",
		},
	}, reports.PlanStep{
		Title: "Freeze.",
		Text: "Until the last step, delete no namespace, no owner of other objects, and no CustomResourceDefinition, and let no pipeline do so. " +
			"Suspend CronJobs and GitOps controllers that prune.",
	}, reports.PlanStep{
		Title: "Upgrade the first server.",
		Text:  "Take it out of the load balancer before it stops. Then wait until it is ready again and the other servers have found it.",
		Commands: []string{"kubeadm upgrade apply " + p.To + "     # on the first control-plane node", "kubectl --server " + node +
			" get --raw '/readyz?verbose'"},
	})
	if probe, ok := probeFor(p); ok {
		want := "The answer must be a list. 404 means that the proxy has no effect, and that the freeze is your only protection."
		if !then.Ways[0].Protected {
			want = "Without protection the answer is 404 until this server is upgraded, too."
		}
		steps = append(steps, reports.PlanStep{
			Title: "Ask an older server for a kind that only " + p.To + " has.", Text: want,
			Commands: []string{"kubectl --server " + old + " get --raw " + probe},
		})
	}
	return append(steps, reports.PlanStep{
		Title: "Upgrade the others, one after the other.",
		Text: "After each server, wait for two minutes and look at the metrics below. With the proxy on, all servers must list the same resources; " +
			"compare the lists before you go on.",
		Commands: []string{
			"kubeadm upgrade node     # on the next control-plane node",
			"kubectl --server " + node + " api-resources --no-headers -o name | sort > NODE.txt",
		},
	}, reports.PlanStep{
		Title: "End the freeze.",
		Text:  "When every server runs " + p.To + ", look for leftovers: namespaces whose deletion does not end, and objects whose namespace or owner is gone.",
		Commands: []string{
			"kubectl get namespaces --field-selector status.phase=Terminating",
		},
	})
}

// leadsTo is the protection after the checklist.
func leadsTo(p reports.UpgradePlan, asked reports.PlanProtection) reports.PlanProtection {
	if file, _ := switchOn(p, asked); file == "" {
		return asked
	}
	return protection(p.From, p.To, "", Flags{FeatureGates: gateOn, PeerCAFile: peerCA})
}

// switchOn returns the lines for kubeadm that switch the proxy on, and why. Both are empty if it is
// on already.
func switchOn(p reports.UpgradePlan, asked reports.PlanProtection) (file, why string) {
	if asked.Ways[0].Protected && asked.Ways[1].Protected {
		return "", ""
	}
	best := protection(p.From, p.To, "", Flags{FeatureGates: gateOn, PeerCAFile: peerCA})
	switch {
	case !best.Ways[0].Protected:
		return "", "No flag helps this pair: " + strings.TrimSuffix(best.Ways[0].Sentence, ".") + ". The freeze is your only protection."
	case semver.MajorMinor(p.From) == "v1.34":
		return "", "Leave it off: servers of v1.34 crash while they cannot fetch the discovery of a peer (finding 5), and give up learning of peers too soon (finding 8). " +
			"The freeze is your only protection."
	}
	arguments, err := kind.APIServerArguments(p.From, scenario.SubjectBuiltin, nil, history.OwnFlags{})
	if err != nil { // cannot happen: the subject is constant
		panic(err)
	}
	var b strings.Builder
	b.WriteString("apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\napiServer:\n  extraArgs:\n")
	for _, a := range arguments {
		if !a.Observing {
			fmt.Fprintf(&b, "    - name: %s\n      value: %q\n", a.Name, a.Value)
		}
	}
	why = "While all servers have one version, no server lacks what another one serves, so the rollout itself does no harm (finding 14)."
	if strings.Contains(asked.Old.Why, "peer-ca-file") || strings.Contains(asked.New.Why, "peer-ca-file") {
		why = "kubeadm gives no `--peer-ca-file`, and without it the feature has no effect. " + why
	}
	return b.String(), why
}

// probeFor is a path to list a resource that only the newer version serves.
func probeFor(p reports.UpgradePlan) (path string, ok bool) {
	for _, r := range p.Appears {
		if r.Subresource == "" && r.On != reports.PlanByRuntimeConfig && r.Group != "" {
			return "/apis/" + r.Name(), true
		}
	}
	return "", false
}
