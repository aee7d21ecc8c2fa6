package upgrade

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/gates"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/reports"
)

// node and old stand for the addresses of servers in commands.
const (
	node = "https://NODE:6443"
	old  = "https://OLD-NODE:6443"
)

// checklist lists the actions of an operator, in order: ten at most.
func checklist(p reports.UpgradePlan, asked, then reports.PlanProtection, flags Flags) (steps []reports.PlanStep) {
	if !asked.Old.Starts || !asked.New.Starts {
		correct := reports.PlanStep{Title: "Correct the flags before the first server is upgraded."}
		if best := protection(p.From, p.To, "", flags.protecting(asked)); best.Old.Starts && best.New.Starts {
			correct.Text, correct.File = "With these arguments both versions start:", flags.extraArgs(p.From, asked)
		}
		return []reports.PlanStep{correct, {
			Title: "Make the plan again, with the corrected flags.", Commands: []string{"skewproof plan --from " + p.From + " --to " + p.To + "     # and these flags"},
		}}
	}
	if len(p.Demands) > 0 {
		step := reports.PlanStep{Title: "Do what release notes demand before the upgrade."}
		for _, d := range p.Demands {
			if len(d.Objects) == 0 {
				step.Text += d.Minor + ": " + d.Text + " "
				continue
			}
			step.Commands = append(step.Commands, fmt.Sprintf("kubectl get -A %s     # %s: %s",
				strings.Join(d.Objects, ","), d.Minor, strings.ReplaceAll(d.Text, "`", "")))
		}
		step.Text = strings.TrimSpace(step.Text)
		steps = append(steps, step)
	}
	move, pki := "", flags.certificates()
	if len(byDefault(p.Vanishes)) > 0 {
		move = " Move them away from the versions that vanish before the first server is upgraded."
	}
	steps = append(steps, reports.PlanStep{
		Title: "Find the clients that use what changes.", Text: "Ask every server which deprecated APIs clients request; look into charts and controllers, too." + move,
		Commands: []string{"kubectl --server " + node + " get --raw /metrics | grep '^apiserver_requested_deprecated_apis'"},
	}, reports.PlanStep{
		Title: "Make it possible to go back.", Text: "On every control-plane node. Without kubeadm: save etcd and the flags of every server.",
		Commands: []string{
			"kubectl -n kube-system exec etcd-$(hostname) -- etcdctl --cacert " + pki + "/etcd/ca.crt --cert " + pki + "/etcd/server.crt \\",
			"  --key " + pki + "/etcd/server.key snapshot save /var/lib/etcd/before-upgrade.db     # with etcd on the node",
			"cp -a /etc/kubernetes/manifests /root/manifests-" + p.From,
		},
	})
	if step, ok := switchOn(p, asked, flags); ok {
		steps = append(steps, step)
	}
	identity := reports.PlanStep{
		Title: "Check that every server has an identity and an address of its own.",
		Text: "There must be as many leases as servers, renewed within the last 10 s: fewer mean that two nodes share a host name (finding 15). " +
			"PEERS must differ, and be an address that the other nodes reach; <none>: the feature is off.",
		Commands: []string{
			"kubectl -n kube-system get leases -l apiserver.kubernetes.io/identity=kube-apiserver -o custom-columns='NAME:.metadata.name," +
				`HOST:.metadata.labels.kubernetes\.io/hostname,PEERS:.metadata.annotations.kubernetes\.io/peer-advertise-address,RENEWED:.spec.renewTime'`,
		},
	}
	if then.Ways[0].Protected || then.Ways[1].Protected {
		identity.Text += " The second command must answer yes, by the binding system:discovery: otherwise every server that starts is ready, and answers 404 " +
			"for what its peers serve, for ever."
		identity.Commands = append(identity.Commands, "kubectl auth can-i get /apis --as system:apiserver --as-group system:authenticated")
	}
	steps = append(steps, identity)
	if differs(p) {
		steps = append(steps, reports.PlanStep{
			Title: "Freeze.",
			Text: "Until the last step, delete no namespace, no owner of other objects and no CustomResourceDefinition, " + unused(p) +
				", and let no pipeline do so. Suspend CronJobs and GitOps controllers that prune." + byThemselves(p, ""),
		})
	}
	steps = append(steps, reports.PlanStep{
		Title: "Upgrade the first server.",
		Text:  "Take it out of the load balancer before it stops, and wait until it is ready. Without kubeadm: replace the kube-apiserver of one node.",
		Commands: []string{
			"kubeadm upgrade apply " + p.To + " --patches DIRECTORY     # by kubeadm " + p.To + "; without --patches if the node has none",
			"kubectl --server " + node + " get --raw '/readyz?verbose'",
		},
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
	steps[0].Commands = slices.Insert(steps[0].Commands, 0, "export KUBECONFIG=/etc/kubernetes/admin.conf     # on a node of kubeadm")
	steps = append(steps, reports.PlanStep{
		Title: "Upgrade the others, one after the other.",
		Text:  "After each, wait for two minutes and look at the signs to stop.",
		Commands: []string{
			"kubeadm upgrade node --patches DIRECTORY     # on the next control-plane node",
			"kubectl --server " + node + " api-resources --no-headers -o name | sort > NODE.txt     # compare these files",
		},
	})
	if !differs(p) {
		return steps
	}
	return append(steps, reports.PlanStep{
		Title: "End the freeze.", Text: "Look for leftovers: namespaces whose deletion does not end, and objects whose namespace or owner is gone.",
		Commands: []string{"kubectl get namespaces --field-selector status.phase=Terminating"},
	})
}

// differs reports whether servers of the two versions can contradict each other, as far as it is
// recorded.
func differs(p reports.UpgradePlan) bool {
	return len(p.Appears)+len(p.Vanishes)+len(p.FieldHarms) > 0
}

// unused says what nobody must use until the last server is upgraded.
func unused(p reports.UpgradePlan) string {
	if len(p.FieldHarms) > 0 {
		return "use no kind that only " + p.To + " serves and no field that the versions treat differently"
	}
	return "create nothing of a kind that only " + p.To + " serves"
}

// byThemselves says what controllers of the newer version create of kinds that only it serves; ""
// if there is nothing. then is what follows for the reader.
func byThemselves(p reports.UpgradePlan, then string) string {
	var names []string
	for _, c := range p.Created {
		if slices.ContainsFunc(p.Appears, func(r reports.PlanResource) bool { return r.Name() == c.GVR.String() }) {
			names = append(names, "`"+c.GVR.String()+"` (`"+strings.Join(c.Names, "`, `")+"`)")
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " kube-controller-manager " + p.To + " creates " + listed(names, len(names)) + " by itself." + then
}

// leadsTo is the protection after the checklist.
func leadsTo(p reports.UpgradePlan, asked reports.PlanProtection, flags Flags) reports.PlanProtection {
	if step, ok := switchOn(p, asked, flags); !ok || step.File == "" {
		return asked
	}
	return protection(p.From, p.To, "", flags.protecting(asked))
}

// switchOn returns the step that switches the proxy on, or that says why it stays off. It returns
// false if the proxy is on already, or if no server lacks what another one serves.
func switchOn(p reports.UpgradePlan, asked reports.PlanProtection, flags Flags) (step reports.PlanStep, ok bool) {
	if asked.Ways[0].Protected && asked.Ways[1].Protected || len(p.Appears)+len(p.Vanishes) == 0 || !asked.Old.Starts || !asked.New.Starts {
		return step, false
	}
	best := protection(p.From, p.To, "", flags.protecting(asked))
	step = reports.PlanStep{Title: "Leave the Mixed Version Proxy as it is."}
	switch {
	case !sameDesign(p.From, p.To):
		step.Text = "No flag helps this pair: the two versions have designs that do not find each other. The freeze is your only protection."
		return step, true
	case !best.Ways[0].Protected:
		step.Text = "No flag helps this pair: " + strings.TrimSuffix(best.Ways[0].Sentence, ".") + ". The freeze is your only protection."
		return step, true
	case semver.MajorMinor(p.From) == "v1.34":
		step.Text = "Servers of v1.34 crash while they cannot fetch the discovery of a peer (finding 5), and give up learning of peers too soon (finding 8). " +
			"The freeze is your only protection."
		return step, true
	}
	var words []string
	step.File = flags.extraArgs(p.From, asked)
	for _, a := range flags.lacking(p.From, asked) {
		words = append(words, "`--"+a[0]+"="+a[1]+"`")
	}
	step.Title = "Switch the Mixed Version Proxy on while all servers still run " + p.From + "."
	step.Text = "Then no server lacks what another one serves, so this does no harm (finding 14). Without kubeadm: give every server " + strings.Join(words, ", ") +
		" (k3s and RKE2: kube-apiserver-arg), with the authority of its own serving certificates, and restart one after the other."
	step.Commands = kubeadmFile
	return step, true
}

// kubeadmFile are the commands that write the manifest of the kube-apiserver of a node of kubeadm
// again. A file from the ConfigMap alone would give a node with two interfaces the address of the
// default route, and drop its patches; kubeadm refuses --patches beside --config.
var kubeadmFile = []string{
	"kubectl -n kube-system edit configmap kubeadm-config     # once: put the arguments below into ClusterConfiguration, in place of those with the same name",
	"PATCHES=/etc/kubernetes/patches MANIFEST=/etc/kubernetes/manifests/kube-apiserver.yaml     # then on one node after the other; PATCHES= if it has none",
	`{ printf 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\npatches:\n  directory: "%s"\nlocalAPIEndpoint:\n' "$PATCHES"`,
	`  sed -n 's/.*--advertise-address=\(.*\)/  advertiseAddress: "\1"/p; s/.*--secure-port=\(.*\)/  bindPort: \1\n---/p' $MANIFEST`,
	"  kubectl -n kube-system get configmap kubeadm-config -o jsonpath='{.data.ClusterConfiguration}'; } > kubeadm.yaml",
	"kubeadm init phase control-plane apiserver --config kubeadm.yaml",
}

// extraArgs are the lacking flags as kubeadm takes them.
func (f Flags) extraArgs(from string, asked reports.PlanProtection) string {
	file := "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\napiServer:\n  extraArgs:\n"
	for _, a := range f.lacking(from, asked) {
		file += fmt.Sprintf("    - {name: %s, value: %q}\n", a[0], a[1])
	}
	return file
}

// lacking returns the names and values of the flags that the servers need for the proxy, and that
// fit the flags that they have.
func (f Flags) lacking(from string, asked reports.PlanProtection) (all [][2]string) {
	want := f.protecting(asked)
	// Peers pass on for whom they ask. kubeadm gives the other --requestheader-* flags by itself.
	given := slices.ContainsFunc(f.Set, func(s gates.Set) bool { return s.Name == gates.UIDHeaders })
	if semver.Compare(from, "v1.34") >= 0 && !given && decide(from, f).Gate(gates.UIDGate) {
		all = append(all, [2]string{gates.UIDHeaders, "X-Remote-Uid"})
	}
	if !asked.Old.Gate || !asked.New.Gate {
		all = append(all, [2]string{history.FeatureGates, want.last(history.FeatureGates)})
	}
	if f.last(gates.PeerCAFile) == "" {
		all = append(all, [2]string{gates.PeerCAFile, want.last(gates.PeerCAFile)})
	}
	return all
}

// probeFor is a path to list a resource that only the newer version serves.
func probeFor(p reports.UpgradePlan) (path string, ok bool) {
	for _, r := range p.Appears {
		if r.Subresource == "" && r.On == reports.PlanByDefault && r.Group != "" {
			return "/apis/" + r.Name(), true
		}
	}
	return "", false
}
