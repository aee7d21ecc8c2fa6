package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var manyPeers = scenario.Scenario{
	Name: "many-peers",
	Happens: "Of fifty servers every second one runs TO, the others FROM. At about the same time, two servers cannot reach each other, one " +
		"of the two cannot reach the last server, one server is killed, and one is restarted. When all this is over, one server is " +
		"replaced by TO.",
	Holds:  "Fifty servers behave as three servers do.",
	Source: "KEP-4020, goals; scalability: every apiserver asks every other one",
	About: []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete", "NoCrash",
		"Converges"},
	MinServers: 50,
	Limits:     scenario.Limits{Backends: onlySimulated, Reason: "because it needs fifty servers"},
	Control:    mixedToTheEnd,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(func(i int) string {
			if i%2 == 0 {
				return p.To
			}
			return p.From
		})
		last := plan.Servers[len(plan.Servers)-1].Name
		plan.Settle(5 * time.Second)
		plan.Inject("there", cut("b", "a"))
		plan.Inject("back", cut("a", "b"))
		plan.Inject("another", cut("b", last))
		plan.Kill("c")
		plan.Soak(10 * time.Second)
		plan.Restart("a")
		plan.Settle(10 * time.Second)
		plan.Start("c")
		plan.Heal("another")
		plan.Heal("back")
		plan.Heal("there")
		plan.Replace("b", p.To)
		plan.ConvergeAfter(25 * time.Second) // each of fifty servers is asked less often, so the checks at the end take longer
		plan.Pressure = pressure{Operations: 5000, Skewed: 300, Unserved: 100, PassedOn: 400, MergedDocuments: 100}
		return *plan
	},
}
