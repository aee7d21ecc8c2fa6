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

The plan assumes the flags that kubeadm sets. If your kube-apiservers have more flags about peers,
give these flags to the plan, because the protection depends on them:

` + "```console" + `
$ kubectl -n kube-system get pod -l component=kube-apiserver -o yaml | grep -E 'feature-gates|peer-ca-file'
$ skewproof plan --from v1.35.4 --to v1.36.3 --feature-gates UnknownVersionInteroperabilityProxy=true \
    --peer-ca-file /etc/kubernetes/pki/ca.crt
` + "```" + `

| your servers | what the plan says |
|---|---|
| kubeadm's defaults, any version | No server passes requests on. From v1.36 on the feature is on by default, but has no effect without ` + "`--peer-ca-file`" + ` ([finding 12](findings/012-no-effect-without-peer-ca-file.md)). |
| v1.35 → v1.36 with defaults | Nothing protects either side: the feature is off in v1.35. |
| v1.35 with ` + "`--peer-ca-file`" + ` alone | kube-apiserver refuses to start. |
| v1.36 and newer with ` + "`--peer-ca-file`" + ` | Servers pass requests on to each other. [Known defects](findings.md) of a working proxy apply. |

## A version that is not recorded

The plan knows the resources of a version from a recording of a real kube-apiserver. If a version
has no recording, the error names the versions that have one. To record another version:

` + "```console" + `
$ skewproof plan --record v1.38.0
$ skewproof plan --from v1.37.1 --to v1.38.0
` + "```" + `

The first command starts the kube-apiserver of that version in a sandbox, twice: with every API on,
and with the defaults. ` + "`--binary kube-apiserver@v1.38.0=PATH`" + ` uses your binary. The recording goes
to skewproof/recorded in your cache directory, or to the directory in ` + "`--documents`" + `.

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
