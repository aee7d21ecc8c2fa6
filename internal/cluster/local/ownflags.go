package local

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// withOwn adds the user's own flags to the flags of the built-in proxy, and joins both values of
// --feature-gates in one flag.
func (p Place) withOwn(mvp []string) []string {
	gates, all := "", []string{}
	for _, arg := range mvp {
		if value, ok := strings.CutPrefix(arg, "--"+history.FeatureGates+"="); ok {
			gates = value
			continue
		}
		all = append(all, arg)
	}
	if gates = p.Flags.Gates(gates); gates != "" {
		all = slices.Insert(all, 0, "--"+history.FeatureGates+"="+gates)
	}
	for _, f := range p.Flags.Others() {
		all = append(all, "--"+f[0]+"="+f[1])
	}
	return all
}

// reserved lists the flags that a run sets for some subject, setup or version, and the flags by
// which it starts, finds, observes and stops a server.
func reserved() []string {
	setup := scenario.Setup{EmulatedVersion: "1.36", Goaway: scenario.On, ShutdownDelay: time.Second, WatchTermination: time.Second}
	args, err := APIServerArguments("v1.37.1", scenario.SubjectBuiltin, Place{Setup: &setup}, Files{})
	if err != nil { // cannot happen, because the arguments are constant
		panic(err)
	}
	names := []string{"etcd-prefix", "etcd-servers-overrides", "external-hostname", "help", "version", "permit-port-sharing",
		"tls-sni-cert-key", "cert-dir"}
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ownGates are the feature gates that a run sets.
var ownGates = []string{scenario.Gate, "StorageVersionAPI", "APIServerIdentity", "AllAlpha", "AllBeta"}

// CheckOwn refuses flags of the user's own that the run sets itself, or that are not of the form
// NAME=VALUE. The same flags are refused on every backend that starts kube-apiservers: kubeadm and
// the backend kind set them, too.
func CheckOwn(o history.OwnFlags) error {
	if o.RuntimeConfig != nil {
		if err := checkList("--runtime-config", *o.RuntimeConfig, true); err != nil {
			return err
		}
	}
	names, seen := reserved(), map[string]bool{}
	for _, f := range o.Flags {
		name, value, ok := strings.Cut(f, "=")
		at := "--kube-apiserver-flag " + f
		switch {
		case !ok || name == "" || strings.HasPrefix(name, "-") || strings.ContainsFunc(f, func(r rune) bool { return r < ' ' || r == 0x7f }):
			return fmt.Errorf("--kube-apiserver-flag %q: want NAME=VALUE in one line, without hyphens before the name", f)
		case name == "runtime-config":
			return fmt.Errorf("%s: the run has a flag of its own for this; give --runtime-config %s", at, value)
		case name == history.FeatureGates:
			if err := checkList(at, value, false); err != nil {
				return err
			}
			for gate := range strings.SplitSeq(value, ",") {
				if name, _, _ := strings.Cut(gate, "="); slices.Contains(ownGates, name) {
					return fmt.Errorf("%s: the run sets the feature gate %s itself, by --subject; it sets %s", at, name, strings.Join(ownGates[:3], ", "))
				}
			}
		case seen[name]:
			return fmt.Errorf("%s: --%s is given twice; join the values, as the flag takes them", at, name)
		case slices.Contains(names, name):
			return fmt.Errorf("%s: the run sets --%s itself, and would not work with another value; it sets %s", at, name, strings.Join(names, ", "))
		}
		seen[name] = true
	}
	return nil
}

// checkList returns an error for a text that is not a list such as "a=true,b=false".
func checkList(at, list string, empty bool) error {
	if list == "" && empty {
		return nil
	}
	for one := range strings.SplitSeq(list, ",") {
		if name, value, _ := strings.Cut(one, "="); name == "" || value != "true" && value != "false" || strings.ContainsAny(name, " \t\n\"'") {
			return fmt.Errorf("%s: %q is not of the form NAME=true or NAME=false; separate several by commas", at, one)
		}
	}
	return nil
}
