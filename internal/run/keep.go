package run

import (
	"errors"
	"fmt"
	"strings"
)

// heldHere is the line with which a dry run shows where the cluster would be held.
const heldHere = "      The cluster is held here."

// checkHeld refuses a plan that cannot be held as the Spec asks.
func (p *Plan) checkHeld() error {
	s := p.Spec
	switch steps := len(p.Schedule.Steps); {
	case s.NoLoad && !s.Keep && !p.Schedule.HasTests():
		return errors.New("--no-load proves nothing: it is for a cluster that is held; give --keep too")
	case s.At != nil && !s.Keep:
		return errors.New("--at says when the cluster is held; give --keep too")
	case s.At != nil && (*s.At < 0 || *s.At > steps):
		return fmt.Errorf("--at %d: %s has the steps 1 to %d, as --dry-run shows; 0 holds the cluster before the first", *s.At, p.Scenario.Name,
			steps)
	}
	return nil
}

// unjudged says why a run of this plan is not judged. It is empty if the run is judged.
func (p *Plan) unjudged() string {
	var why []string
	if p.Spec.NoLoad && !p.Schedule.HasTests() { // tests are a load too
		why = append(why, "no load was sent (--no-load)")
	}
	if at := p.Spec.At; at != nil {
		why = append(why, fmt.Sprintf("the cluster was held after %d of %d steps, as it was then (--at)", *at, len(p.Schedule.Steps)))
	}
	return strings.Join(why, ", and ")
}
