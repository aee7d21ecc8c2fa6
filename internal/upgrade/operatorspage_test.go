package upgrade

// operatorsPage is docs/operators.md, without the versions of its first command and its excerpt.
const operatorsPage = `# Before an upgrade

` + "```console" + `
$ skewproof plan --from %s --to %s
` + "```" + `

The plan needs no cluster, and takes less than a second. This is its beginning:

` + "```text" + `
EXCERPT
` + "```" + `

The rest of the plan lists vanishing resources, changes of preferred versions, the protection that
usual flags give, the known defects that apply, a checklist, the metrics to watch, the signs to
stop, the way back, and commands that rehearse the upgrade. ` + "`-o html`" + ` writes one page for
colleagues, ` + "`-o markdown`" + ` a ticket, and ` + "`-o json`" + ` the same data for programs.

## Say which flags your servers have

Without a file, the plan assumes the flags that kubeadm sets. ` + "`--config`" + ` reads your flags and your
version from a file:

` + "```console" + `
$ skewproof plan --config kubeadm.yaml --to v1.37.1
$ skewproof plan --config /etc/kubernetes/manifests/kube-apiserver.yaml --to v1.37.1
$ ps -o args= -C kube-apiserver | skewproof plan --flags-from - --from v1.36.3 --to v1.37.1
` + "```" + `

The file is kubeadm's ClusterConfiguration (v1beta3 or newer, with an InitConfiguration if you have
one), the ConfigMap ` + "`kubeadm-config`" + `, a static pod of kube-apiserver, or a configuration of k3s or
RKE2 with ` + "`kube-apiserver-arg`" + `. ` + "`--flags-from`" + ` also reads a command line. Single flags, such as
` + "`--feature-gates`" + ` and ` + "`--peer-ca-file`" + `, come in addition and win.

The plan resolves feature gates with the code of Kubernetes, and knows all flags and gates of the
recorded versions. If a kube-apiserver does not start with your flags, the plan repeats its reason,
and the exit code is 1.

| your servers | what the plan says |
|---|---|
| kubeadm's defaults, any version | No server passes requests on. From v1.36 on the feature is on by default, but has no effect without ` + "`--peer-ca-file`" + ` ([finding 12](findings/012-no-effect-without-peer-ca-file.md)). |
| v1.35 → v1.36 with defaults | Nothing protects either side: the feature is off in v1.35. |
| v1.35 with ` + "`--peer-ca-file`" + ` alone | kube-apiserver refuses to start. |
| v1.36 and newer with ` + "`--peer-ca-file`" + ` | Servers pass requests on to each other. [Known defects](findings.md) of a working proxy apply. |

## A version that is not recorded

The plan knows the resources, the flags and the feature gates of a version from a recording. If a
version has no recording, the nearest patch of its minor version stands in, and the plan says so. If
there is none, the error names the versions that have one. To record another version:

` + "```console" + `
$ skewproof plan --record v1.38.0
$ skewproof plan --from v1.37.1 --to v1.38.0
` + "```" + `

The first command starts the kube-apiserver of that version in a sandbox, twice: with every API on,
and with the defaults. For the flags it builds a program with the module of that version. With
` + "`--binary kube-apiserver@v1.38.0=PATH`" + ` it starts your binary. The recording goes to
skewproof/recorded in your cache directory, or to the directory in ` + "`--documents`" + `.

## Rehearse it

The last part of a plan has commands that carry out the upgrade on real kube-apiservers on this
machine, under load and with faults. [usage.md](usage.md) explains their requirements and results.
` + "`--runtime-config`" + ` and ` + "`--kube-apiserver-flag`" + ` give the servers your own configuration:

` + "```console" + `
$ skewproof run rolling-upgrade --from v1.36.3 --to v1.37.1 --known --runtime-config= \
    --kube-apiserver-flag feature-gates=WatchList=false
` + "```" + `

` + "`--runtime-config=`" + ` gives every server the APIs that are on by default. Without this
flag every API is on, and the two versions differ in more resources than they do in your cluster.
`
