package local

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/gates"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy"
)

// replaceable are flags of a run that the user's own replace. A scenario can do with any value.
var replaceable = []string{"service-account-issuer", "service-cluster-ip-range", PolicyFlag}

const (
	runtimeConfig   = "runtime-config"
	emulatedVersion = "emulated-version"
)

// withOwn adds the user's own flags to the flags of the run, and joins both values of
// --feature-gates in one flag.
func (p Place) withOwn(run []string) (all []string) {
	own, given, list := p.Flags.Others(), map[string]bool{}, p.Flags.Joined(history.FeatureGates)
	uids, set := gates.Read(list)[gates.UIDGate]
	hasPolicy := false
	for _, arg := range run {
		name, value := cut(arg)
		if slices.Contains(replaceable, name) && len(p.Flags.Values(name)) > 0 || name == gates.UIDHeaders && set && !uids {
			hasPolicy = hasPolicy || name == PolicyFlag
			continue
		}
		if name == history.FeatureGates {
			if of := p.setup().FeatureGates; of != "" {
				value += "," + of
			}
			if list != "" {
				list, value = "", gates.With(list, gates.Read(value))
			}
			arg = "--" + name + "=" + value
		}
		given[name] = true
		all = append(all, arg)
	}
	if list != "" {
		all = append(all, "--"+history.FeatureGates+"="+list)
	}
	for _, f := range own {
		// A flag that the run gives, too, has the same value, or is of a step of 'skewproof step'. Only
		// servers with the reference proxy have a policy.
		if !given[f[0]] && (f[0] != PolicyFlag || hasPolicy) {
			all = append(all, "--"+f[0]+"="+f[1])
		}
	}
	return all
}

// cut returns the name and the value of a flag on a command line.
func cut(arg string) (name, value string) {
	name, value, _ = strings.Cut(strings.TrimPrefix(arg, "--"), "=")
	return name, value
}

// Start is one way in which a plan starts a kube-apiserver.
type Start struct {
	Server, Version string
	Setup           *scenario.Setup
	// Own is true if the program is a build of the user's own, which may have other flags and feature
	// gates than the release.
	Own bool
	// Args are the flags of the run, without the user's own. A flag without a value must not be
	// changed at all.
	Args []string
}

// implied are flags that a run does not give, because it needs their defaults.
var implied = []string{"--audit-log-format=json", "--audit-log-mode=blocking", "--authorization-config", "--encryption-provider-config",
	"--etcd-prefix=/registry", "--etcd-servers-overrides", "--help", "--tls-sni-cert-key", "--version"}

// reasons say why a run needs its own values of flags. A name ends with "*" if it is a prefix.
var reasons = []struct {
	names []string
	why   string
}{
	{[]string{"advertise-address", "bind-address", "secure-port", "peer-advertise-*"},
		"clients, peers and faults reach each server at the address and port that the run gives it"},
	{[]string{"tls-*", "client-ca-file", "peer-ca-file", "proxy-client-*", "requestheader-*"},
		"the run makes the certificates, authorities and headers by which clients and peers trust each other"},
	{[]string{"etcd-*", "encryption-provider-config"}, "the run starts its own etcd, and reads there what the servers store"},
	{[]string{"service-account-*"}, "all servers of the run sign and verify tokens with the same pair of keys"},
	{[]string{"authorization-*"}, "the run gives its users their rights by RBAC"},
	{[]string{"audit-*"}, "the run reads in the audit log which server handled a request"},
	{[]string{"help", "version"}, "with it a kube-apiserver prints a text and ends"},
	{[]string{"anonymous-auth"}, "kubeadm's probes and its way to join a node ask servers without credentials"},
	{[]string{"enable-bootstrap-token-auth"}, "kubeadm joins nodes with such a token"},
}

func reason(name string) string {
	for _, r := range reasons {
		for _, pattern := range r.names {
			if prefix, ok := strings.CutSuffix(pattern, "*"); pattern == name || ok && strings.HasPrefix(name, prefix) {
				return r.why
			}
		}
	}
	return "the scenario depends on it"
}

// Refused is the refusal of one of the user's own flags, or of all of them together if it has no
// name.
type Refused struct {
	Name, Value string
	Why         error
}

func (r *Refused) Error() string {
	if r.Name == "" {
		return "the flags of --kube-apiserver-flag and --runtime-config: " + r.Why.Error()
	}
	return fmt.Sprintf("--kube-apiserver-flag %s=%s: %v", r.Name, r.Value, r.Why)
}

// Unwrap returns the reason.
func (r *Refused) Unwrap() error { return r.Why }

// CheckOwn refuses flags of the user's own that a kube-apiserver refuses, or that would break a run
// that starts servers in these ways. The notes say what was not checked.
func CheckOwn(o history.OwnFlags, starts []Start) (notes []string, err error) {
	for _, f := range o.Flags {
		control := func(r rune) bool { return r < ' ' || r == 0x7f }
		if name, _ := cut(f); name == "" || strings.HasPrefix(f, "-") || strings.ContainsFunc(f, control) {
			return nil, fmt.Errorf("--kube-apiserver-flag %q: want NAME=VALUE in one line, or NAME to switch something on, "+
				"without hyphens before the name", f)
		}
	}
	if err := gates.CheckList(o.Joined(history.FeatureGates)); err != nil {
		return nil, &Refused{history.FeatureGates, o.Joined(history.FeatureGates), err}
	}
	for _, f := range o.Others() {
		if err := checkFlag(f[0], f[1], starts); err != nil {
			return nil, &Refused{f[0], f[1], err}
		}
	}
	for _, s := range starts {
		if err := scenario.Emulable(s.Version, o.Emulates()); err != nil {
			return nil, &Refused{emulatedVersion, o.Joined(emulatedVersion), err}
		}
		more, err := s.check(o)
		if err != nil {
			return nil, err
		}
		notes = append(notes, more...)
	}
	slices.Sort(notes)
	return slices.Compact(notes), nil
}

func checkFlag(name, value string, starts []Start) error {
	if name == runtimeConfig {
		return fmt.Errorf("skewproof has a flag of its own for this: give --runtime-config=%s", value)
	}
	is := func(arg string) bool { n, _ := cut(arg); return n == name }
	if name == PolicyFlag && !slices.ContainsFunc(starts, func(s Start) bool { return slices.ContainsFunc(s.Args, is) }) {
		return fmt.Errorf("only servers of the subject %s have this flag", scenario.SubjectReference)
	}
	if name == PolicyFlag {
		_, err := proxy.ParsePolicy(value)
		return err
	}
	if slices.Contains(replaceable, name) {
		return nil
	}
	everywhere := !slices.ContainsFunc(starts, func(s Start) bool { return !slices.ContainsFunc(s.Args, is) })
	for _, s := range starts {
		for _, arg := range slices.Concat(s.Args, implied) {
			switch {
			case !is(arg) || arg == "--"+name+"="+value && (everywhere || slices.Contains(implied, arg)):
			case everywhere || slices.Contains(implied, arg):
				return fmt.Errorf("the run cannot give servers this value, because %s", reason(name))
			default:
				return fmt.Errorf("in this scenario the run starts server %s with %s (%s); leave the flag out, or choose another scenario",
					s.Server, arg, cmp.Or(s.Setup.String(), reason(name)))
			}
		}
	}
	return nil
}

// check refuses flags with which this server would not start, or would have a feature gate of the
// run, or the one that the run is about, in another state.
func (s Start) check(o history.OwnFlags) (notes []string, err error) {
	apis := "--" + runtimeConfig + "="
	own := Place{Flags: o}.withOwn(slices.DeleteFunc(slices.Clone(s.Args), func(arg string) bool { return strings.HasPrefix(arg, apis) }))
	if value := o.APIs("api/all=true"); value != "" {
		own = append(own, apis+value)
	}
	before, err := s.decide(s.Args)
	if err != nil {
		return nil, err
	}
	after, err := s.decide(own)
	if err != nil {
		return nil, err
	}
	set := map[string]bool{gates.Proxy: before.Gate(gates.Proxy)}
	for _, arg := range s.Args {
		if name, value := cut(arg); name == history.FeatureGates {
			maps.Copy(set, gates.Read(value))
		}
	}
	wanted := gates.Read(o.Joined(history.FeatureGates))
	for name, on := range set {
		if is, ok := wanted[name]; ok && is != on || before.Gate(name) != after.Gate(name) {
			return nil, &Refused{history.FeatureGates, o.Joined(history.FeatureGates), fmt.Errorf("server %s (%s) would have %s=%t instead of %t; "+
				"--subject and the scenario decide whose proxy is on", s.Server, cmp.Or(s.Setup.String(), s.Version), name, !on, on)}
		}
	}
	if !after.Starts {
		return nil, &Refused{Why: fmt.Errorf("kube-apiserver %s does not start with them: %s%s", s.Version, strings.Join(after.Reasons, "; "),
			Meant(o, after.Flags()))}
	}
	return after.Notes, nil
}

// Meant is the end of an error about flags that a server refuses: what may be meant by one that it
// does not have.
func Meant(o history.OwnFlags, has []string) (hint string) {
	for _, f := range o.Others() {
		if !slices.Contains(has, f[0]) {
			hint = cmp.Or(hint, fault.Nearest(f[0], has))
		}
	}
	return hint
}

// decide decides what a server does with a command line. Flags without a value are left out.
func (s Start) decide(args []string) (gates.Decision, error) {
	var flags []gates.Set
	for _, arg := range args {
		if name, value := cut(arg); strings.Contains(arg, "=") && name != PolicyFlag { // which is no flag of the release
			flags = append(flags, gates.Set{Name: name, Value: value})
		}
	}
	if s.Own {
		return gates.Assume(release.Of(s.Version), flags)
	}
	return gates.Decide(release.Of(s.Version), flags)
}
