package upgrade

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/scenarios"
)

// mostScenarios limits the scenarios of a plan, because each takes minutes.
const mostScenarios = 5

// rehearsed is a run that rehearses an upgrade, with the reason for it.
type rehearsed struct {
	spec run.Spec
	why  string
}

// Rehearsal returns the runs of a plan, in its order. None of them is refused by 'skewproof run'.
func Rehearsal(o Options, p reports.UpgradePlan) (specs []run.Spec) {
	for _, r := range rehearsal(o.Findings, p, p.Protection[0], o.Flags) {
		specs = append(specs, r.spec)
	}
	return specs
}

// rehearsal returns the scenarios that cover the plan: the upgrade with the flags of the servers,
// then with the proxy on, and the fewest scenarios that show the findings, harmful ones first.
func rehearsal(all findings.Catalogue, p reports.UpgradePlan, asked reports.PlanProtection, flags Flags) (chosen []rehearsed) {
	if !asked.Old.Starts || !asked.New.Starts {
		return nil
	}
	add := func(name, why string) bool {
		r := rehearsed{run.Spec{Scenario: name, From: p.From, To: p.To, Known: run.KnownOnly}, why}
		if apis := flags.joined(runtimeConfig); apis != "" || byDefaultsDiffer(p) {
			r.spec.RuntimeConfig = &apis
		}
		if gates := flags.others(); gates != "" {
			r.spec.APIServerFlags = []string{history.FeatureGates + "=" + gates}
		}
		_, err := r.spec.Plan()
		if err == nil {
			chosen = append(chosen, r)
		}
		return err == nil
	}
	protected := asked.Ways[0].Protected && asked.Ways[1].Protected
	if !protected {
		add("kubeadm-defaults", "The mixed control plane with kubeadm's flags about peers, which give no protection.")
	}
	if then := leadsTo(p, asked, flags); then.Ways[0].Protected && then.Ways[1].Protected {
		add("rolling-upgrade", "The upgrade itself, with the proxy on.")
	}
	left := map[int]bool{}
	harms := map[int]bool{}
	for _, f := range p.Findings {
		left[f.Number], harms[f.Number] = true, f.Harms
	}
	shows := func(s scenario.Scenario) (numbers []int) {
		for _, f := range all {
			if left[f.Number] && slices.Contains(f.Scenarios, s.Name) {
				numbers = append(numbers, f.Number)
			}
		}
		return numbers
	}
	harmful := func(s scenario.Scenario) int {
		return len(slices.DeleteFunc(shows(s), func(n int) bool { return !harms[n] }))
	}
	candidates := slices.DeleteFunc(scenarios.All(), func(s scenario.Scenario) bool { return slices.Contains(s.Labels, "slow") })
	for _, r := range chosen {
		for _, s := range candidates {
			if s.Name == r.spec.Scenario {
				for _, n := range shows(s) {
					delete(left, n)
				}
			}
		}
	}
	for len(chosen) < mostScenarios && len(candidates) > 0 {
		best := slices.MaxFunc(candidates, func(a, b scenario.Scenario) int {
			return cmp.Or(cmp.Compare(harmful(a), harmful(b)), cmp.Compare(len(shows(a)), len(shows(b))), cmp.Compare(b.Name, a.Name))
		})
		numbers := shows(best)
		if len(numbers) == 0 {
			break
		}
		candidates = slices.DeleteFunc(candidates, func(s scenario.Scenario) bool { return s.Name == best.Name })
		var words []string
		for _, n := range numbers {
			words = append(words, fmt.Sprint(n))
		}
		noun := "finding "
		if len(words) > 1 {
			noun = "findings "
		}
		if add(best.Name, fmt.Sprintf("%s Shows %s%s.", best.Happens, noun, strings.Join(words, ", "))) {
			for _, n := range numbers {
				delete(left, n)
			}
		}
	}
	return chosen
}

// byDefaultsDiffer reports whether the versions are known to differ in what they serve by default.
func byDefaultsDiffer(p reports.UpgradePlan) bool {
	return slices.ContainsFunc(slices.Concat(p.Appears, p.Vanishes), func(r reports.PlanResource) bool { return r.On == reports.PlanByDefault })
}

// others are the feature gates without that of the proxy, which a run sets by itself.
func (f Flags) others() string {
	all := strings.Split(withGate(f.gates()), ",")
	return strings.Join(all[:len(all)-1], ",")
}
