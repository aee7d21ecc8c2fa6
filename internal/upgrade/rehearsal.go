package upgrade

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/shell"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/scenarios"
)

// mostScenarios limits the scenarios of a plan, because each takes minutes.
const mostScenarios = 6

// rehearsal returns the smoke set and the scenarios that show the findings of the plan. It begins
// with the quickest set of scenarios that shows all these findings.
func rehearsal(all findings.Catalogue, p reports.UpgradePlan, asked reports.PlanProtection) []reports.PlanScenario {
	pair := []string{"--from", p.From, "--to", p.To, "--known"}
	command := func(words ...string) string {
		return shell.Line(append(append([]string{"skewproof"}, words...), pair...)...)
	}
	chosen := []reports.PlanScenario{{
		Name: "smoke", Why: "The upgrade itself, a partition, a server that leaves: five scenarios with the proxy on.",
		Command: command("conformance", "--labels", "smoke", "--controls", "few"),
	}}
	if !asked.Ways[0].Protected || !asked.Ways[1].Protected {
		chosen = append(chosen, reports.PlanScenario{
			Name: "kubeadm-defaults", Why: "The same servers with the flags of kubeadm, which give no protection.",
			Command: command("run", "kubeadm-defaults"),
		})
	}
	left := map[int]bool{}
	for _, f := range p.Findings {
		left[f.Number] = true
	}
	candidates := slices.DeleteFunc(scenarios.All(), func(s scenario.Scenario) bool {
		return slices.ContainsFunc(chosen, func(c reports.PlanScenario) bool { return c.Name == s.Name })
	})
	for len(chosen) < mostScenarios {
		shows := func(s scenario.Scenario) (numbers []int) {
			for _, f := range all {
				if left[f.Number] && slices.Contains(f.Scenarios, s.Name) {
					numbers = append(numbers, f.Number)
				}
			}
			return numbers
		}
		best := slices.MaxFunc(candidates, func(a, b scenario.Scenario) int {
			return cmp.Or(cmp.Compare(len(shows(a)), len(shows(b))), cmp.Compare(b.Name, a.Name))
		})
		numbers := shows(best)
		if len(numbers) == 0 {
			break
		}
		var words []string
		for _, n := range numbers {
			delete(left, n)
			words = append(words, fmt.Sprint(n))
		}
		noun := "finding "
		if len(words) > 1 {
			noun = "findings "
		}
		chosen = append(chosen, reports.PlanScenario{
			Name: best.Name, Why: fmt.Sprintf("%s Shows %s%s.", best.Happens, noun, strings.Join(words, ", ")), Command: command("run", best.Name),
		})
	}
	return chosen
}
