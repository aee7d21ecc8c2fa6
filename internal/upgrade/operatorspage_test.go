package upgrade

// operatorsPage is docs/operators.md, without the versions of its first command and its excerpt.
const operatorsPage = `# Before an upgrade

` + "```console" + `
$ skewproof plan --from %s --to %s
` + "```" + `

This needs no cluster, and takes no second. It begins like this:

` + "```text" + `
EXCERPT
` + "```" + `

Then follow what vanishes, which preferred versions change, what protects clients with usual flags, the
known defects that apply, a checklist, what to watch, when to stop, how to go back, and how to
rehearse the upgrade. ` + "`-o html`" + ` writes one page for colleagues, ` + "`-o markdown`" + ` a ticket, and
` + "`-o json`" + ` the same for programs.

## Say which flags your servers have

The plan takes the flags that kubeadm gives. If your kube-apiservers have more flags about peers, say
so, because they decide about the protection:

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
| v1.36 and newer with ` + "`--peer-ca-file`" + ` | Servers pass requests on to each other. The [known defects](findings.md) apply that need a proxy that works. |

## A version that is not recorded

What versions serve was recorded from real kube-apiservers. An error names the versions that there
are. To record another one:

` + "```console" + `
$ skewproof plan --record v1.38.0
$ skewproof plan --from v1.37.1 --to v1.38.0
` + "```" + `

This starts the kube-apiserver of that version in a sandbox, twice: with every API on, and with the
defaults. ` + "`--binary kube-apiserver@v1.38.0=PATH`" + ` uses your binary. The recording is in skewproof/recorded
of your cache directory, or where ` + "`--documents`" + ` says.

## Rehearse it

The last part of a plan are commands that carry out the upgrade on real kube-apiservers on this
machine, under load and with faults. [usage.md](usage.md) says what they need and what their results
mean. With ` + "`--runtime-config`" + ` and ` + "`--kube-apiserver-flag`" + ` the servers get your own configuration:

` + "```console" + `
$ skewproof run rolling-upgrade --from v1.36.3 --to v1.37.1 --known --runtime-config= \
    --kube-apiserver-flag feature-gates=WatchList=false
` + "```" + `

` + "`--runtime-config=`" + ` gives every server the APIs that are on by default. Without it every API is on, so
that versions differ more than yours do.
`
