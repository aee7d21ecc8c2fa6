// Package upgrade makes the plan of an upgrade for operators: what differs between two versions of
// kube-apiserver, what protects clients while both run, which known defects apply, and what to do
// in which order. It connects to no cluster. It knows from recordings what versions serve, and from
// the findings which defects they have.
package upgrade

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/gates"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/sim/recorded"
)

// Options say which upgrade is wanted.
type Options struct {
	// From and To are the older and the newer recording.
	From, To recorded.Recording
	Flags    Flags
	// Notes are sentences for the reader about From, To and Flags.
	Notes []string
	// Version is the version of skewproof.
	Version string
}

// Flags are the flags of all kube-apiservers that decide about the Mixed Version Proxy, in addition
// to those that kubeadm gives. The zero value is kubeadm's defaults.
type Flags struct {
	// Set are the flags, in their order.
	Set []gates.Set
	// Recordings are the directories of the user's own recordings.
	Recordings []string
}

// With returns the flags with one more at their end. An empty value adds none.
func (f Flags) With(name, value string) Flags {
	if value != "" {
		f.Set = append(slices.Clip(f.Set), gates.Set{Name: name, Value: value, From: "--" + name})
	}
	return f
}

// runtimeConfig is the flag that switches APIs on and off, and emulatedVersion the one that makes a
// server behave like an older version.
const (
	runtimeConfig   = "runtime-config"
	emulatedVersion = "emulated-version"
)

// joined joins the values of a flag that may be repeated.
func (f Flags) joined(name string) string {
	var all []string
	for _, s := range f.Set {
		if s.Name == name {
			all = append(all, s.Value)
		}
	}
	return strings.Join(all, ",")
}

// last returns the value of a flag of which the last one counts.
func (f Flags) last(name string) (value string) {
	for _, s := range f.Set {
		if s.Name == name {
			value = s.Value
		}
	}
	return value
}

// certificates returns kubeadm's directory of certificates, which clusters may choose.
func (f Flags) certificates() string {
	if client := f.last("proxy-client-cert-file"); path.Base(client) == "front-proxy-client.crt" {
		return path.Dir(client)
	}
	return gates.Certificates
}

// words returns the flags that decide about the Mixed Version Proxy.
func (f Flags) words() (words []string) {
	for _, s := range f.Set {
		if slices.Contains([]string{history.FeatureGates, runtimeConfig, emulatedVersion, gates.UIDHeaders}, s.Name) ||
			strings.HasPrefix(s.Name, "peer-") {
			words = append(words, s.String())
		}
	}
	return words
}

// unread returns the flags that may decide about the Mixed Version Proxy, but have a variable.
func (f Flags) unread() string {
	var words []string
	for _, s := range f.Set {
		if s.Variable() && !slices.Contains(words, s.String()) && slices.Contains([]string{"", history.FeatureGates, runtimeConfig, emulatedVersion}, s.Name) {
			words = append(words, s.String())
		}
	}
	return strings.Join(words, " ")
}

// Find finds the recordings of a pair of versions. To must not be older than from. An error about
// the versions is of the kind [run.KindUsage].
func Find(from, to string, directories ...string) (older, newer recorded.Recording, err error) {
	if semver.IsValid(from) && semver.IsValid(to) && semver.Compare(to, from) < 0 {
		return older, newer, run.Usagef("%w; a plan says how to go back", run.WrongOrder(from, to, true, true))
	}
	for _, side := range []struct {
		flag, version string
		to            *recorded.Recording
	}{{"--from", from, &older}, {"--to", to, &newer}} {
		if *side.to, err = recorded.Find(side.version, directories...); err != nil {
			hint := ""
			if semver.Canonical(side.version) == side.version { // others are refused there
				hint = fmt.Sprintf("; record it with 'skewproof plan --record %s'", side.version)
			}
			return older, newer, run.Usagef("%s %w%s", side.flag, err, hint)
		}
	}
	return older, newer, nil
}

// Make makes the plan, and the runs of its rehearsal, in the order of the plan. None of the runs is
// refused by 'skewproof run'.
func Make(o Options) (p reports.UpgradePlan, specs []run.Spec) {
	from, to, known := o.From.All.Name, o.To.All.Name, findings.All()
	for _, side := range []*recorded.Recording{&o.From, &o.To} {
		var note string
		if *side, note = emulating(*side, o.Flags); note != "" {
			o.Notes = append(slices.Clip(o.Notes), note)
		}
	}
	p = reports.UpgradePlan{
		APIVersion: reports.APIVersion, Kind: reports.KindPlan, SkewproofVersion: o.Version, From: from, To: to,
		Appears: only(o.To, o.From), Vanishes: only(o.From, o.To),
		Protection: protections(from, to, o.Flags),
	}
	asked := p.Protection[0]
	p.Notes = notes(o, p, addSkew(&p, o.Flags))
	p.Demands = demands(from, to)
	then := leadsTo(p, asked, o.Flags)
	p.Findings = applying(known, p, asked, then)
	p.Harms = harmful(known, p, asked, o.Flags)
	p.Comparison = compared(known, p, o.Flags)
	p.Sentence = sentence(p)
	if invariant.SkipsMinor(p.From, p.To) {
		p.Sentence = fmt.Sprintf("Kubernetes does not support this upgrade in one step: kube-apiservers may be one minor version apart, and %s cannot read "+
			"everything that %s stores (finding 48). %s", p.From, p.To, p.Sentence)
	}
	p.Checklist = checklist(p, asked, then, o.Flags)
	table := Alarms(p)
	p.Metrics = watched(table)
	p.Stop, p.StopCommands = stop(p, then, table)
	p.Back = back(p)
	p.Rehearsal = []reports.PlanScenario{}
	runs := rehearsal(known, p, then, o.Flags)
	p.Lacks = lackOf(runs)
	for _, r := range runs {
		p.Rehearsal = append(p.Rehearsal, reports.PlanScenario{Name: r.spec.Scenario, Why: r.why, Command: r.spec.Command()})
		specs = append(specs, r.spec)
	}
	return p, specs
}

// byDefault are the resources of a list that servers have without --runtime-config.
func byDefault(all []reports.PlanResource) []reports.PlanResource {
	return slices.DeleteFunc(slices.Clone(all), func(r reports.PlanResource) bool { return r.On == reports.PlanByRuntimeConfig })
}

func sentence(p reports.UpgradePlan) string {
	appears, vanishes := len(byDefault(p.Appears)), len(byDefault(p.Vanishes))
	if len(p.Appears)+len(p.Vanishes) == 0 {
		return fmt.Sprintf("%s and %s serve the same resources, so no server lacks what another one serves.", p.From, p.To)
	}
	if appears+vanishes == 0 {
		return fmt.Sprintf("%s and %s differ only in resources that have to be switched on.", p.From, p.To)
	}
	return fmt.Sprintf("By default, %[1]s serves %[2]s that %[3]s lacks, and %[3]s serves %[4]s that %[1]s lacks.", p.To,
		counted(appears, "resource"), p.From, counted(vanishes, "resource"))
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun
	case 1:
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func notes(o Options, p reports.UpgradePlan, skew []string) (notes []string) {
	notes = slices.Concat(o.Notes, skew)
	sides := []recorded.Recording{o.From, o.To}
	if p.From == p.To {
		sides = sides[:1]
	}
	for _, r := range sides {
		for _, note := range decide(r.All.Name, o.Flags).Notes {
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	if p.From == p.To {
		notes = append(notes, "Both versions are the same. This plan is for a change of flags.")
	}
	for _, r := range sides {
		if _, err := presetOf(r.All.Name); err != nil {
			notes = append(notes, fmt.Sprintf("No finding was checked with %s: it counts as the newest version that has some.", r.All.Name))
		}
		if semver.Prerelease(r.All.Name) != "" {
			notes = append(notes, fmt.Sprintf("No rehearsal: kube-apiserver %s cannot be built with published modules.", r.All.Name))
		}
	}
	return append(notes, "Your custom resources, your aggregated APIs, resources behind feature gates that are off by default; and of most flags, whether "+
		"values make sense and files exist (docs/operators.md).")
}
