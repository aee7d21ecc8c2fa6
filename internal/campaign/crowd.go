package campaign

import (
	"math/rand/v2"
	"slices"

	"github.com/skewproof/skewproof/internal/scenario"
)

// crowdOneIn is the share of schedules that get a crowd.
const crowdOneIn = 4

// crowd lets a caller send many requests at a time during one of the waits of a schedule, through
// one of its servers. Only real servers can be crowded, so the generator that the simulator shares
// knows no crowds. The seed alone decides. A crowd is for the reference, which must keep callers
// apart; a campaign does not send it to released proxies.
func crowd(p *scenario.Plan, seed uint64) {
	choices := rand.New(rand.NewPCG(seed, 0))
	if choices.IntN(crowdOneIn) > 0 {
		return
	}
	var waits []int
	for i, s := range p.Steps {
		if s.Action == scenario.Soak {
			waits = append(waits, i)
		}
	}
	if len(waits) == 0 {
		return
	}
	at := waits[choices.IntN(len(waits))]
	server := p.Servers[choices.IntN(len(p.Servers))].Name
	p.Steps = slices.Insert(p.Steps, at+1, scenario.Step{Action: scenario.EndCrowd, Server: server})
	p.Steps = slices.Insert(p.Steps, at, scenario.Step{Action: scenario.StartCrowd, Server: server})
}
