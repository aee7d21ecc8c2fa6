package upgrade

// operatorsPage is docs/operators.md, without the excerpt of a plan.
const operatorsPage = `# Before an upgrade

Fifteen minutes lead to a decision. The plan needs no cluster, and takes less than a second.

## 1. Make the plan

` + "```console" + `
$ kubectl -n kube-system get configmap kubeadm-config -o jsonpath='{.data.ClusterConfiguration}' > kubeadm.yaml
$ skewproof plan --config kubeadm.yaml --to v1.37.1
` + "```" + `

The file says which version and which flags your kube-apiservers have. Other files do, too; without
any, the plan assumes kubeadm's defaults. Single flags come in addition and win:

` + "```console" + `
$ skewproof plan --config /etc/kubernetes/manifests/kube-apiserver.yaml --to v1.37.1
$ ps -o args= -C kube-apiserver | skewproof plan --flags-from - --from v1.36.3 --to v1.37.1
$ skewproof plan --from v1.35.4 --to v1.36.3 --feature-gates UnknownVersionInteroperabilityProxy=true \
    --peer-ca-file /etc/kubernetes/pki/ca.crt
` + "```" + `

` + "`--config`" + ` reads kubeadm's ClusterConfiguration (v1beta3 or newer, with an InitConfiguration if you
have one), the ConfigMap ` + "`kubeadm-config`" + `, a static pod of kube-apiserver, or a configuration of k3s
or RKE2 with ` + "`kube-apiserver-arg`" + `; ` + "`--flags-from`" + ` also reads a command line. The plan resolves gates
with the code of Kubernetes, and knows all flags and gates of the recorded versions.

## 2. Read the first screen

This is the beginning of the plan for v1.36.3 → v1.37.1 with kubeadm's defaults:

` + "```text" + `
EXCERPT
` + "```" + `

The steps follow, with their commands, and then the details. ` + "`-o wide`" + ` has all of them.

The plan also says what to watch, and when to stop. [alarms.md](alarms.md) says how soon each of
these signs rose on real servers.

## 3. Decide

| the first screen says | what to do |
|---|---|
| a server does not start (exit code 1) | Do not begin. Correct the flags that it names, and make the plan again. |
| no resource of a version is missing in the other one | Upgrade. No server lacks what another one serves. |
| with these flags no server passes requests on | Switch the Mixed Version Proxy on before the upgrade, as a step of the plan says. Or leave it off, and keep the freeze: it is your only protection. ` + "`-o wide`" + ` compares both by their harm. |
| servers pass requests on to each other | Upgrade, with the freeze. The [known defects](findings.md) of the plan remain, most of them only in a partition or a crash. |
| a workload never settles, or fields are dropped | Let nobody use these fields before the last server is upgraded. No proxy helps: the kinds are old. If you cannot be sure, give the newer servers the flag that the plan names, and take it away when the last server is upgraded. |
| a server answers nodes 403 | Let nobody use these kinds in pods before the last server is upgraded. |
| a kind is served in no version any more | Save its objects, and delete them before the upgrade. |

## 4. Rehearse it

` + "```console" + `
$ skewproof plan --from v1.36.3 --to v1.37.1 --rehearse -o html > plan.html
` + "```" + `

This carries out the scenarios of the plan with your flags, on real kube-apiservers on this machine,
and writes their verdicts into the plan, which names the flags that a run cannot have, such as files
of your nodes. It takes about two minutes for each scenario, and longer if kube-apiservers have to
be built first. [usage.md](usage.md) explains requirements and verdicts.

## A version that is not recorded

The plan knows the resources, the flags and the feature gates of a version from a recording. If a
version has no recording, the nearest patch of its minor version stands in, and the plan says so. If
there is none, the error names the versions that have one. To record another version:

` + "```console" + `
$ skewproof plan --record v1.38.0
$ skewproof plan --from v1.37.1 --to v1.38.0
` + "```" + `

The first command starts the kube-apiserver of that version in a sandbox, with every API on and with
the defaults, and then its kube-controller-manager for a minute, to see what controllers create by
themselves. It asks the authorizer what nodes, service accounts and users may do. For the flags it
builds a program with the module of that version. ` + "`--binary kube-apiserver@v1.38.0=PATH`" + ` uses your
binary. The recording goes to skewproof/recorded in your cache directory, or to the directory in
` + "`--documents`" + `.

Which fields the two versions treat differently is recorded for each pair of them:

` + "```console" + `
$ skewproof plan --record-fields --from v1.37.1 --to v1.38.0
` + "```" + `

This starts one kube-apiserver of each version on one etcd, with default flags, and sends thousands
of objects to both: every kind that both serve, with one path set at a time. The objects are not
stored (` + "`dryRun=All`" + `), except those that show what an update through the older server keeps. Then it
restarts the servers with other feature gates, to find out which gate makes a difference vanish.
A version that drops a field may yet name its owner in ` + "`managedFields`" + `; the table of ` + "`-o wide`" + ` says
where.
`
