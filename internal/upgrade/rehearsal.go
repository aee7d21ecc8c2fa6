package upgrade

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/gates"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/scenarios"
)

// mostScenarios limits the scenarios of a plan, because each takes minutes.
const mostScenarios = 5

// rehearsed is a run that rehearses an upgrade, with the reason for it, and with the flags that the
// servers of the run do not have, by the reason.
type rehearsed struct {
	spec    run.Spec
	why     string
	without map[string][]string
}

// rehearsal returns the scenarios that cover the plan: the upgrade with the flags of the servers,
// then with the proxy on as after the checklist, and the fewest scenarios that show the findings,
// harmful ones first.
func rehearsal(all findings.Catalogue, p reports.UpgradePlan, then reports.PlanProtection, flags Flags) (chosen []rehearsed) {
	asked := p.Protection[0]
	if !asked.Old.Starts || !asked.New.Starts || semver.Prerelease(p.From)+semver.Prerelease(p.To) != "" {
		return nil
	}
	left := map[int]bool{} // the findings that no chosen scenario shows, and whether they harm
	for _, f := range p.Findings {
		left[f.Number] = f.Harms
	}
	shows := func(name string) (numbers []int, harmful int) {
		for _, f := range all {
			if harms, is := left[f.Number]; is && slices.Contains(f.Scenarios, name) {
				numbers = append(numbers, f.Number)
				if harms {
					harmful++
				}
			}
		}
		return numbers, harmful
	}
	add := func(name, why string) {
		spec := run.Spec{Scenario: name, From: p.From, To: p.To, Known: run.KnownOnly}
		if apis := flags.joined(runtimeConfig); apis != "" || len(byDefault(slices.Concat(p.Appears, p.Vanishes))) > 0 {
			spec.RuntimeConfig = &apis
		}
		if _, err := spec.Plan(); err != nil {
			return
		}
		without := flags.give(&spec)
		chosen = append(chosen, rehearsed{spec, why, without})
		shown, _ := shows(name)
		maps.DeleteFunc(left, func(n int, _ bool) bool { return slices.Contains(shown, n) })
	}
	if !asked.Ways[0].Protected || !asked.Ways[1].Protected {
		add("kubeadm-defaults", "The mixed control plane with kubeadm's flags about peers, which give no protection.")
	}
	if then.Ways[0].Protected && then.Ways[1].Protected {
		add("rolling-upgrade", "The upgrade itself, with the proxy on.")
	}
	candidates := slices.DeleteFunc(scenarios.All(), func(s scenario.Scenario) bool { return slices.Contains(s.Labels, "slow") })
	for len(chosen) < mostScenarios && len(candidates) > 0 {
		best := slices.MaxFunc(candidates, func(a, b scenario.Scenario) int {
			byA, harmfulA := shows(a.Name)
			byB, harmfulB := shows(b.Name)
			return cmp.Or(cmp.Compare(harmfulA, harmfulB), cmp.Compare(len(byA), len(byB)), cmp.Compare(b.Name, a.Name))
		})
		numbers, _ := shows(best.Name)
		if len(numbers) == 0 {
			break
		}
		candidates = slices.DeleteFunc(candidates, func(s scenario.Scenario) bool { return s.Name == best.Name })
		add(best.Name, fmt.Sprintf("%s Shows %s.", best.Happens, numbered(numbers)))
	}
	return chosen
}

// give passes the flags of the servers on to a run, except those that 'skewproof run' refuses for
// this scenario. It returns these by the reason, without those that kubeadm gives.
func (f Flags) give(s *run.Spec) (without map[string][]string) {
	without = map[string][]string{}
	list := gates.Read(f.joined(history.FeatureGates))
	delete(list, gates.Proxy) // the scenario decides about it
	var wanted []string
	for _, flag := range f.Set {
		switch {
		case flag.Name == history.FeatureGates || flag.Name == runtimeConfig || flag.From == gates.FromKubeadm:
		case strings.HasPrefix(flag.Value, "/"):
			without[onNodes] = append(without[onNodes], flag.Name)
		case flag.Variable():
			without[unresolved] = append(without[unresolved], flag.Name)
		default:
			wanted = append(wanted, strings.TrimPrefix(flag.String(), "--"))
		}
	}
	if len(list) > 0 {
		wanted = append(wanted, history.FeatureGates+"="+gates.With("", list))
	}
	s.APIServerFlags = wanted
	if _, err := s.Plan(); err == nil {
		return without
	}
	s.APIServerFlags = nil
	for _, own := range wanted {
		with := *s
		with.APIServerFlags = append(slices.Clone(s.APIServerFlags), own)
		_, err := with.Plan()
		var refused *local.Refused
		switch name, _, _ := strings.Cut(own, "="); {
		case err == nil:
			*s = with
		case errors.As(err, &refused):
			without[refused.Why.Error()] = append(without[refused.Why.Error()], name)
		default:
			without[err.Error()] = append(without[err.Error()], name)
		}
	}
	return without
}

// These are reasons why a run does not have a flag.
const (
	onNodes    = "this is a file of a node"
	unresolved = "the value of the variable is not known"
)

// lackOf says which flags some server of a rehearsal does not have.
func lackOf(all []rehearsed) (says []string) {
	lacks := map[string][]string{}
	seen := map[string]bool{}
	for _, r := range all {
		for _, why := range slices.Sorted(maps.Keys(r.without)) {
			for _, name := range r.without[why] {
				if !seen[name] {
					seen[name] = true
					lacks[why] = append(lacks[why], name)
				}
			}
		}
	}
	for _, why := range slices.Sorted(maps.Keys(lacks)) {
		says = append(says, fmt.Sprintf("Not in every scenario of the rehearsal: `--%s`. Reason: %s.", strings.Join(lacks[why], "`, `--"), why))
	}
	return says
}
