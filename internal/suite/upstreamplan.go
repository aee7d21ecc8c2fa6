package suite

import (
	"fmt"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/upstreame2e"
	"github.com/skewproof/skewproof/reports"
)

// happens says what a run does, by path.
var happens = map[string]string{
	reports.PathDirect: "Kubernetes' own tests are clients of the second server, which runs FROM. Only the first server runs TO. No server has a proxy.",
	reports.PathOld:    "Kubernetes' own tests are clients of the second server, which runs FROM. Only the first server runs TO.",
	reports.PathBalancer: "Kubernetes' own tests reach the servers through a load balancer, while the servers are replaced one after the other by a newer " +
		"version.",
}

// upstreamPlan is the plan of a run on a path.
func upstreamPlan(path, from, to, tests string, chosen []string) scenario.Plan {
	upgrade := path == reports.PathBalancer
	through := "b"
	if upgrade {
		through = ""
	}
	p := scenario.Parameters{Servers: 3, From: from, To: to, Bounds: history.DefaultBounds}
	plan := p.Cluster(func(i int) string {
		if i == 0 && !upgrade {
			return to
		}
		return from
	})
	plan.Settle(2 * time.Second)
	plan.StartControllers(from, through)
	plan.StartTests(tests, through, scenario.Tests{Specs: chosen})
	if upgrade {
		for _, server := range plan.Names() {
			plan.Soak(pace(len(chosen)))
			plan.Replace(server, to)
		}
	}
	plan.AwaitTests(testsLimit)
	return *plan
}

// pace is how long a rolling upgrade waits before each server. The upgrade must end before the
// tests, which take at least two seconds a spec.
func pace(specs int) time.Duration {
	return min(max(time.Duration(specs)*time.Second/6, 2*time.Second), 30*time.Second)
}

// tooShort says that the tests ended before the upgrade. It is empty if they did not.
func tooShort(plan *run.Plan, report *reports.RunReport, results upstreame2e.Results) string {
	if report == nil {
		return ""
	}
	var tests, upgraded reports.Seconds
	for i, s := range report.Steps {
		switch {
		case i >= len(plan.Schedule.Steps):
		case plan.Schedule.Steps[i].Action == scenario.StartTests:
			tests = s.EndSeconds
		case plan.Schedule.Steps[i].Action == scenario.Replace:
			upgraded = s.EndSeconds
		}
	}
	if ended := tests + reports.SecondsOf(results.Took); ended < upgraded {
		return fmt.Sprintf("the tests had ended after %.0f s, and the rolling upgrade after %.0f s: choose more specs, or leave --focus out",
			ended, upgraded)
	}
	return ""
}
