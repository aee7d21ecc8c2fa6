package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var onlySimulated = []string{BackendSim}

var manyPeers = Scenario{
	Name: "many-peers",
	Happens: "Of fifty servers every other one runs TO, the others FROM. Two cannot reach each other, and one of them not the last, while one is " +
		"killed and another restarted; all at about the same time. When everything is well again, one is replaced by TO.",
	Holds:            "What holds of three servers holds of fifty.",
	Source:           "KEP-4020, goals; scalability: every apiserver asks every other one",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete", "NoCrash", "Converges"},
	MinServers:       50,
	NeedsTwoVersions: true,
	Family:           Scale,
	Limits:           Limits{Backends: onlySimulated, Reason: "because it needs fifty servers"},
	Control:          mixedToTheEnd,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(func(i int) string {
			if i%2 == 0 {
				return p.To
			}
			return p.From
		})
		last := plan.Servers[len(plan.Servers)-1].Name
		plan.settle(5 * time.Second)
		plan.inject("there", cut("b", "a"))
		plan.inject("back", cut("a", "b"))
		plan.inject("another", cut("b", last))
		plan.add(Step{Action: Kill, Server: "c"})
		plan.soak(10 * time.Second)
		plan.restart("a")
		plan.settle(10 * time.Second)
		plan.add(Step{Action: Start, Server: "c"})
		plan.heal("another")
		plan.heal("back")
		plan.heal("there")
		plan.replace("b", p.To)
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300, Unserved: 100}
		return *plan
	},
}
