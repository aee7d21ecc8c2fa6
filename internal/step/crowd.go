package step

import (
	"context"
	"slices"

	"github.com/skewproof/skewproof/internal/scenario"
)

// crowd is a crowd that has not ended.
type crowd struct {
	server   string
	disperse func()
}

// gather starts a crowd. A crowd that cannot be is on for the state all the same, so that the plan
// can end it.
func (e *Executor) gather(ctx context.Context, s *scenario.Step) error {
	crowds, ok := e.Load.(Crowds)
	if !ok {
		return errNoCrowds
	}
	disperse, err := crowds.Gather(ctx, s.Server)
	if err != nil {
		return err
	}
	e.crowds = append(e.crowds, crowd{s.Server, disperse})
	return nil
}

// disperse ends the crowd at a server, if there is one.
func (e *Executor) disperse(server string) {
	i := slices.IndexFunc(e.crowds, func(c crowd) bool { return c.server == server })
	if i < 0 {
		return
	}
	of := e.crowds[i]
	e.crowds = slices.Delete(e.crowds, i, i+1)
	of.disperse()
}

// disperseAll ends the crowds that the plan left.
func (e *Executor) disperseAll() {
	for len(e.crowds) > 0 {
		server := e.crowds[0].server
		e.disperse(server)
		e.off(scenario.Step{Action: scenario.EndCrowd, Server: server})
	}
}
