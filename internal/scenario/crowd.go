package scenario

import "fmt"

// These actions begin and end a crowd: one caller with rights who keeps hundreds of ordinary
// watches open through Step.Server, of resources that only other servers serve. Other callers must
// not notice the crowd. There is at most one at a server.
const (
	StartCrowd Action = "crowd"
	EndCrowd   Action = "disperse"
)

// gather begins or ends a crowd.
func (s *State) gather(step Step) error {
	if s.server(step.Server) == nil {
		return fmt.Errorf("%s: no server %q in the plan", step.Action, step.Server)
	}
	at := func(o *Step) bool { return o.Action == StartCrowd && o.Server == step.Server }
	switch {
	case step.Action == StartCrowd:
		for i := range s.on {
			if at(&s.on[i]) {
				return fmt.Errorf("%s %s: there is one already: end that first", step.Action, step.Server)
			}
		}
		s.on = append(s.on, step)
	case !s.take(at):
		return fmt.Errorf("%s %s: there is no crowd", step.Action, step.Server)
	}
	return nil
}
