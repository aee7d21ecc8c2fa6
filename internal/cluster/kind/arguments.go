package kind

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/gates"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Directories and files that a run adds to a node.
const (
	pkiDir       = "/etc/kubernetes/pki" // kubeadm's
	manifestsDir = "/etc/kubernetes/manifests"
	filesDir     = "/kind/skewproof"    // patches and the audit policy; read only
	recordsDir   = "/var/lib/skewproof" // logs of requests; not below /var/log, which kind copies by itself
	auditLog     = recordsDir + "/audit.jsonl"
	auditPolicy  = filesDir + "/audit-policy.yaml"
)

// Argument is one argument of a kube-apiserver, with its reason.
type Argument struct {
	Name, Value string
	Why         string
	// Observing is true if only a run needs the argument, to observe servers, and no operator.
	Observing bool
}

// APIServerArguments returns the arguments that a kube-apiserver gets in addition to kubeadm's.
// oldest is the oldest version that must understand them. setup may be nil. flags are the user's
// own.
func APIServerArguments(oldest, subject string, setup *scenario.Setup, flags history.OwnFlags) ([]Argument, error) {
	own, err := ownArguments(oldest, subject, setup, flags)
	var arguments []Argument
	switch apis := flags.APIs(allAPIs); {
	case apis == allAPIs:
		arguments = append(arguments, Argument{"runtime-config", apis, "Every API a version has, so that versions differ in both directions.",
			true})
	case apis != "":
		arguments = append(arguments, Argument{"runtime-config", apis, usersOwn, true})
	}
	arguments = append(arguments, []Argument{
		{"audit-policy-file", auditPolicy, "The audit logs tell who served which request, and who passed it on.", true},
		{"audit-log-path", auditLog, "", true},
		{"audit-log-maxsize", "4096", "", true},
	}...)
	for _, f := range flags.Others() {
		run := func(a Argument) bool { return a.Name == f[0] && a.Why != usersOwn } // with the same value
		if !slices.Contains(ownNames, f[0]) && !slices.ContainsFunc(arguments, run) {
			arguments = append(arguments, Argument{f[0], f[1], usersOwn, true})
		}
	}
	return append(arguments, own...), err
}

// kubeadms are arguments that kubeadm gives, or whose defaults kubeadm needs. A run cannot do with
// other values.
var kubeadms = []string{"--advertise-address", "--anonymous-auth=true", "--authorization-mode=Node,RBAC", "--bind-address",
	"--client-ca-file", "--enable-bootstrap-token-auth=true", "--etcd-cafile", "--etcd-certfile", "--etcd-keyfile",
	"--etcd-servers", "--proxy-client-cert-file",
	"--proxy-client-key-file", "--requestheader-allowed-names", "--requestheader-client-ca-file", "--requestheader-extra-headers-prefix",
	"--requestheader-group-headers", "--requestheader-username-headers", "--secure-port", "--service-account-key-file",
	"--service-account-signing-key-file", "--tls-cert-file", "--tls-private-key-file"}

// Given returns the arguments of a kube-apiserver without the user's own, in the form of
// Start in the backend local.
func Given(oldest, subject string, setup *scenario.Setup) ([]string, error) {
	arguments, err := APIServerArguments(oldest, subject, setup, history.OwnFlags{})
	all := slices.Clone(kubeadms)
	for _, a := range arguments {
		all = append(all, "--"+a.Name+"="+a.Value)
	}
	return all, err
}

// usersOwn is the reason of the user's own arguments.
const usersOwn = "The user's own."

// allAPIs switches on every API that a version has.
const allAPIs = "api/all=true"

// ownNames are the names of all arguments that ownArguments may return. kubeadm may set some of
// them.
var ownNames = []string{gates.UIDHeaders, "feature-gates", "peer-ca-file", "emulated-version", local.PolicyFlag}

// ownArguments returns the arguments about proxies. Servers may differ in them.
func ownArguments(oldest, subject string, setup *scenario.Setup, flags history.OwnFlags) ([]Argument, error) {
	var arguments []Argument
	kubeadm := setup != nil && setup.Flags == scenario.FlagsKubeadm && lifecycle.Subject(subject, setup) == scenario.SubjectBuiltin
	list := flags.Joined(history.FeatureGates)
	if uids, set := gates.Read(list)[gates.UIDGate]; semver.Compare(oldest, "v1.34") >= 0 && !kubeadm && (uids || !set) {
		arguments = append(arguments, Argument{
			Name: gates.UIDHeaders, Value: "X-Remote-Uid",
			Why: "Peers pass on for whom they ask. kubeadm sets the other requestheader-* and proxy-client-* arguments by itself, but not this one.",
		})
	}
	if setup.Like() != "" {
		arguments = append(arguments, Argument{
			Name: "emulated-version", Value: setup.EmulatedVersion, Why: "It behaves like an older minor version (KEP-4330).",
		})
	}
	gate := func(on bool, why string) {
		if !kubeadm {
			arguments = append(arguments, Argument{Name: history.FeatureGates, Value: gates.With(list, map[string]bool{scenario.Gate: on}), Why: why})
		}
	}
	if kubeadm && list != "" {
		arguments = append(arguments, Argument{Name: history.FeatureGates, Value: list, Why: usersOwn})
	}
	switch subject = lifecycle.Subject(subject, setup); subject {
	case scenario.SubjectBuiltin, scenario.SubjectReference:
		gate(true, "The Mixed Version Proxy (KEP-4020): on by default from v1.36, to be asked for before.")
		if !kubeadm {
			arguments = append(arguments, Argument{
				Name: "peer-ca-file", Value: pkiDir + "/ca.crt",
				Why: "Peers verify each other's serving certificates by it. kubeadm signs these with the cluster's authority, for the name\n" +
					"kubernetes.default.svc too. Peers find each other at --advertise-address, which kubeadm sets to the node's address.",
			})
		}
		if subject == scenario.SubjectReference && !kubeadm {
			policy := scenario.SubjectReference
			if own := flags.Values(local.PolicyFlag); len(own) > 0 {
				policy = own[len(own)-1]
			}
			arguments = append(arguments, Argument{Name: local.PolicyFlag, Value: policy, Why: "How the reference proxy behaves."})
		}
	case scenario.SubjectNone:
		gate(false, "The Mixed Version Proxy is switched off: the negative control.")
	default:
		return nil, fmt.Errorf("subject %q: the backend kind knows %s", subject, strings.Join(scenario.Subjects, ", "))
	}
	for _, f := range flags.Others() {
		run := func(a Argument) bool { return a.Name == f[0] && a.Why != usersOwn }
		if slices.Contains(ownNames, f[0]) && f[0] != local.PolicyFlag && !slices.ContainsFunc(arguments, run) {
			arguments = append(arguments, Argument{f[0], f[1], usersOwn, true})
		}
	}
	return arguments, nil
}
