package scenario

import (
	"fmt"
	"slices"
)

// These actions begin and end a crowd: one caller with rights who sends many requests at a time
// through Step.Server, for resources that only other servers serve. Other callers must not notice
// the crowd. There is at most one at a server.
const (
	StartCrowd Action = "crowd"    // start Step.Crowd at Step.Server
	EndCrowd   Action = "disperse" // end it
)

// Crowd says what the caller of a crowd sends.
type Crowd string

// The kinds of crowds.
const (
	CrowdOfWatches   Crowd = "watches"      // watches that last, hundreds at a time
	CrowdOfBodies    Crowd = "slow-bodies"  // large bodies, each sent a byte a second
	CrowdOfReaders   Crowd = "slow-readers" // lists whose answers the caller does not read
	CrowdOfAbandoned Crowd = "abandoned"    // lists that the caller gives up at once
)

// Crowds lists all kinds.
var Crowds = []Crowd{CrowdOfWatches, CrowdOfBodies, CrowdOfReaders, CrowdOfAbandoned}

// Does says what the caller does, for people.
func (c Crowd) Does() string {
	switch c {
	case CrowdOfWatches:
		return "keeps hundreds of watches open"
	case CrowdOfBodies:
		return "sends hundreds of bodies slowly"
	case CrowdOfReaders:
		return "asks for hundreds of lists and reads none"
	case CrowdOfAbandoned:
		return "asks for lists and gives them up at once"
	default:
		return "sends " + string(c)
	}
}

func (c Crowd) validate() error {
	if !slices.Contains(Crowds, c) {
		return fmt.Errorf("crowd %q: want one of %q", string(c), Crowds)
	}
	return nil
}

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
				return fmt.Errorf("%s %s: a caller %s there already: end that first", step.Action, step.Server, s.on[i].Crowd.Does())
			}
		}
		s.on = append(s.on, step)
	case !s.take(at):
		return fmt.Errorf("%s %s: there is no crowd", step.Action, step.Server)
	}
	return nil
}

// RefusedCrowd says that there cannot be a crowd. The run has not failed.
type RefusedCrowd struct {
	Server string // "" if no server can have one
	Why    string // as the end of a sentence
}

// Error names the server and gives the reason.
func (e *RefusedCrowd) Error() string {
	if e.Server == "" {
		return "no crowd: " + e.Why
	}
	return "no crowd at " + e.Server + ": " + e.Why
}
