package upgrade

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/gates"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim"
)

// gateOn switches the feature on.
const gateOn = scenario.Gate + "=true"

// protections describes the effect of the requested configuration, and then of usual
// configurations.
func protections(from, to string, asked Flags) []reports.PlanProtection {
	on := Flags{}.With(history.FeatureGates, gateOn)
	usual := []struct {
		words string
		flags Flags
	}{
		{"kubeadm's defaults, without a flag about peers", Flags{}},
		{"`--feature-gates=" + gateOn + "`", on},
		{"`--peer-ca-file`", Flags{}.With(gates.PeerCAFile, asked.certificates()+"/ca.crt")},
		{"`--feature-gates=" + gateOn + "` and `--peer-ca-file`", on.With(gates.PeerCAFile, asked.certificates()+"/ca.crt")},
	}
	words := "`" + strings.ReplaceAll(strings.Join(asked.words(), " "), "`", "'") + "`"
	for _, u := range usual {
		if slices.Equal(u.flags.words(), asked.words()) {
			words = u.words
		}
	}
	all := []reports.PlanProtection{protection(from, to, words, asked)}
	for _, u := range usual {
		if u.flags.Recordings = asked.Recordings; !slices.Equal(u.flags.words(), asked.words()) {
			all = append(all, protection(from, to, u.words, u.flags))
		}
	}
	return all
}

func protection(from, to, words string, flags Flags) reports.PlanProtection {
	p := reports.PlanProtection{Configuration: words, Old: sideOf(from, flags), New: sideOf(to, flags)}
	same := sameDesign(from, to)
	p.Ways = [2]reports.PlanRoute{route(p.Old, p.New, same), route(p.New, p.Old, same)}
	switch a, b := p.Ways[0].Protected, p.Ways[1].Protected; {
	case !p.Old.Starts || !p.New.Starts:
		p.Sentence = "With these flags not every server starts."
		for _, side := range []reports.PlanSide{p.Old, p.New} {
			if !side.Starts {
				p.Sentence += " " + side.Version + ": " + side.Why
			}
		}
	case a && b:
		p.Sentence = "With these flags servers pass requests on to each other, in both directions."
	case a:
		p.Sentence = oneWay(from, to)
	case b:
		p.Sentence = oneWay(to, from)
	default:
		p.Sentence = "With these flags, no server passes requests on: each server answers 404 for kinds that only the other version has."
	}
	return p
}

// oneWay says that only servers of one version pass requests on.
func oneWay(from, to string) string {
	return fmt.Sprintf("With these flags, %[1]s passes on requests for kinds that only %[2]s has. %[2]s does not pass on requests for kinds that only %[1]s has.", from, to)
}

// hasProxy reports whether a version has a Mixed Version Proxy that works.
func hasProxy(version string) bool {
	minor := semver.MajorMinor(version)
	return semver.Compare(minor, "v1.28") >= 0 && minor != "v1.33"
}

// sameDesign reports whether servers of two versions can find each other.
func sameDesign(from, to string) bool {
	return hasProxy(from) == hasProxy(to) && isAlpha(from) == isAlpha(to)
}

// isAlpha reports whether servers of a version learn what peers serve from storage versions, as
// those of v1.28 to v1.32. Source: docs/policies.md, and CheckDesigns of the backend local.
func isAlpha(version string) bool {
	policy, err := presetOf(version)
	return err == nil && policy.Knowledge.StorageVersions
}

// presetOf returns the policy that behaves like a version. For a version that is newer than all
// that are known, it returns the newest policy and an error.
func presetOf(version string) (proxy.Policy, error) {
	policy, err := sim.PresetOf(version)
	if err != nil && semver.Compare(version, "v1.34") > 0 {
		all := proxy.Presets()
		policy = all[len(all)-2] // the last one is the reference
	}
	return policy, err
}

// decide decides whether a server starts with flags. If it cannot, the decision has a note.
func decide(version string, flags Flags) gates.Decision {
	d, err := gates.Decide(version, flags.Set, flags.Recordings...)
	if err != nil {
		d.Starts, d.Notes = true, append(d.Notes, fmt.Sprintf("Not checked: whether %s starts with these flags: %v", version, err))
	}
	return d
}

func sideOf(version string, flags Flags) reports.PlanSide {
	s, d := reports.PlanSide{Version: version}, decide(version, flags)
	s.Starts, s.Gate = d.Starts, d.Starts && d.Gate(gates.Proxy)
	delay, _ := time.ParseDuration(d.Value("shutdown-delay-duration")) // a server refuses another value
	s.Delays = delay > 0
	authority := d.Value(gates.PeerCAFile)
	policy, _ := presetOf(version)
	switch {
	case !s.Starts:
		s.Why = "kube-apiserver refuses to start: `" + strings.Join(d.Reasons, "`; `") + "`."
	case !hasProxy(version) && (s.Gate || authority != ""):
		s.Gate, s.Why = false, "It has no Mixed Version Proxy that works: versions before v1.28 have none, and v1.33 has neither of the two designs."
	case !hasProxy(version):
		s.Why = "It has no Mixed Version Proxy that works."
	case !s.Gate:
		s.Why = "The feature gate `" + scenario.Gate + "` is off. It is on by default from v1.36. Without it peers do not find the server either."
	case authority == "":
		s.Why = "`--peer-ca-file` is not given. So the server has no proxy, although its feature gate is on, and its log does not report this (finding 12)."
	case isAlpha(version) && !strings.Contains(d.Value(runtimeConfig), "internal.apiserver.k8s.io/v1alpha1=true"):
		s.Why = "The design of v1.28 to v1.32 needs `--runtime-config=internal.apiserver.k8s.io/v1alpha1=true`, too."
	default:
		s.PassesOn, s.Merges = true, policy.Discovery.Merge
		if !s.Merges {
			s.Why = "It passes requests on, but its discovery does not list what its peers serve. Merged discovery came with v1.35."
		}
	}
	if of := flags.unread(); of != "" && s.Starts {
		s.Why = strings.TrimSpace(s.Why + " This is right if `" + of + "` changes nothing: the value of the variable is not known.")
	}
	return s
}

// route describes what one server does with requests for resources that only a peer of the other
// version has.
func route(at, peer reports.PlanSide, same bool) reports.PlanRoute {
	var r reports.PlanRoute
	switch {
	case !at.Starts || !peer.Starts:
		r.Sentence = "not every server starts"
	case !at.PassesOn:
		r.Sentence = "not protected: answers 404"
	case !same:
		r.Sentence = "not protected: the two versions have designs that do not find each other"
	case !peer.Gate:
		r.Sentence = "not protected: peers without the feature gate are not found, and the answer is 404 (finding 14)"
	case !at.Merges:
		r.Protected, r.Sentence = true, "passed on; not in discovery"
	default:
		r.Protected, r.Sentence = true, "passed on, and in discovery"
	}
	return r
}
