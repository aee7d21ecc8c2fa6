package local

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	cliflag "k8s.io/component-base/cli/flag"

	"github.com/skewproof/skewproof/internal/gates"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// replaceable are flags of a run that the user's own replace. A scenario can do with any value.
var replaceable = []string{reconcilerType, "service-account-issuer", "service-cluster-ip-range"}

const reconcilerType = "endpoint-reconciler-type"

// withOwn adds the user's own flags to the flags of the run, and joins both values of
// --feature-gates in one flag.
func (p Place) withOwn(run []string) (all []string) {
	own, given, gated := p.Flags.Others(), map[string]bool{}, false
	for _, arg := range run {
		name, value := cut(arg)
		if slices.Contains(replaceable, name) && len(p.Flags.Values(name)) > 0 {
			continue
		}
		if name == history.FeatureGates {
			if of := p.setup().FeatureGates; of != "" {
				value += "," + of
			}
			gated, arg = true, "--"+name+"="+p.Flags.Gates(value)
		}
		given[name] = true
		all = append(all, arg)
	}
	if gates := p.Flags.Gates(""); gates != "" && !gated {
		all = append(all, "--"+history.FeatureGates+"="+gates)
	}
	for _, f := range own {
		if !given[f[0]] { // a flag that the run gives, too, has the same value, or is of a step of 'skewproof step'
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
	{[]string{reconcilerType}, "the run itself writes the addresses of the Service kubernetes in this scenario"},
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

// CheckOwn refuses flags of the user's own that a kube-apiserver would not understand, or that
// would break a run that starts servers in these ways.
func CheckOwn(o history.OwnFlags, starts []Start) error {
	if err := checkAPIs(o.APIs("")); err != nil {
		return err
	}
	for _, f := range o.Flags {
		control := func(r rune) bool { return r < ' ' || r == 0x7f }
		if name, _ := cut(f); name == "" || strings.HasPrefix(f, "-") || strings.ContainsFunc(f, control) {
			return fmt.Errorf("--kube-apiserver-flag %q: want NAME=VALUE in one line, or NAME to switch something on, "+
				"without hyphens before the name", f)
		}
	}
	if err := checkGates(o, starts); err != nil {
		return err
	}
	for _, f := range o.Others() {
		if err := checkFlag(f[0], f[1], starts); err != nil {
			return fmt.Errorf("--kube-apiserver-flag %s=%s: %w", f[0], f[1], err)
		}
	}
	for _, s := range starts {
		if err := scenario.Emulable(s.Version, o.Emulates()); err != nil {
			return fmt.Errorf("--kube-apiserver-flag emulated-version: %w", err)
		}
	}
	return nil
}

func checkFlag(name, value string, starts []Start) error {
	if name == "runtime-config" {
		return fmt.Errorf("skewproof has a flag of its own for this: give --runtime-config %s", value)
	}
	direct := slices.ContainsFunc(starts, func(s Start) bool { return s.Setup != nil && s.Setup.Direct })
	if slices.Contains(replaceable, name) && (name != reconcilerType || !direct) {
		return nil
	}
	is := func(arg string) bool { n, _ := cut(arg); return n == name }
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

// checkGates refuses values of --feature-gates that a kube-apiserver cannot read, and those that
// would change a gate that the run sets or the default of the gate that the run is about.
func checkGates(o history.OwnFlags, starts []Start) error {
	values := o.Values(history.FeatureGates)
	at := "--kube-apiserver-flag feature-gates=" + strings.Join(values, ",")
	own, err := history.ParseGates(values...)
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	for _, s := range starts {
		given := ""
		for _, arg := range s.Args {
			if name, value := cut(arg); name == history.FeatureGates {
				given = value
			}
		}
		runs, _ := history.ParseGates(given) // the run's own
		for name, on := range runs {
			if wanted, ok := own[name]; ok && wanted != on {
				return fmt.Errorf("%s: the run sets the feature gate %s=%t itself, for server %s: --subject and the scenario decide whose proxy is on",
					at, name, on, s.Server)
			}
		}
		behaves := cmp.Or(s.Setup.Like(), o.Emulates(), s.Version)
		both, _ := history.ParseGates(o.Gates(given))
		if before, after := gates.ProxyOn(behaves, runs), gates.ProxyOn(behaves, both); before != after {
			return fmt.Errorf("%s: server %s starts without a flag about its proxy (%s), and the proxy would be on: %t instead of %t; "+
				"--subject and the scenario decide whose proxy is on", at, s.Server, s.Setup, after, before)
		}
	}
	return nil
}

// checkAPIs refuses a value of --runtime-config that every kube-apiserver refuses, or that turns
// off everything. Sources: k8s.io/apiserver/pkg/server/resourceconfig/helpers.go
// (MergeAPIResourceConfigs) and pkg/server/options/api_enablement.go (Validate).
func checkAPIs(list string) error {
	apis := cliflag.ConfigurationMap{}
	_ = apis.Set(list) // returns no error
	for _, key := range slices.Sorted(maps.Keys(apis)) {
		value, words := apis[key], strings.Split(key, "/")
		_, err := strconv.ParseBool(cmp.Or(value, "true"))
		refused := func(why string) error {
			return fmt.Errorf("--runtime-config %s: every kube-apiserver refuses %s: %s", list, strings.TrimSuffix(key+"="+value, "="), why)
		}
		switch {
		case slices.Contains([]string{"api/all", "api/ga", "api/beta", "api/alpha"}, key):
			if value != "true" && value != "false" {
				return refused("write " + key + "=true or " + key + "=false, in lower case")
			}
		case len(words) != 2 && len(words) != 3:
			return refused("write GROUP/VERSION or GROUP/VERSION/RESOURCE, and /v1 for the core group")
		case err != nil:
			return refused("write true or false after the =")
		case len(words) == 3 && strings.ToLower(words[2]) != words[2]:
			return refused("write the plural of the resource in lower case")
		}
	}
	if len(apis) == 1 && apis["api/all"] == "false" {
		return fmt.Errorf("--runtime-config %s: every kube-apiserver refuses this without another API that is on", list)
	}
	return nil
}
