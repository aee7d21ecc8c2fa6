package step_test

import (
	"context"
	"errors"
	"testing"

	"github.com/skewproof/skewproof/internal/scenario"
)

// refusing is a definer whose control plane does not accept widgets.
type refusing struct{ *fake }

func (r refusing) Define(context.Context, scenario.Definition) error {
	return &scenario.RefusedStep{Err: errors.New("its names are taken")}
}

// If a control plane rightly refuses a definition, the run does not fail, and the executor carries
// out the later steps.
func TestARefusedDefinitionIsRecorded(t *testing.T) {
	f := &fake{}
	c := config(f, f)
	c.Definer = refusing{f}
	err := performWith(t, t.Context(), c, twoServers, scenario.Step{Action: scenario.Define, Definition: widgets}, at(scenario.Restart, "a"),
		scenario.Step{Action: scenario.Undefine, Definition: widgets})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.steps) != 3 || f.steps[0].Refused == "" || f.steps[0].Error != "" || f.steps[1].Refused != "" {
		t.Errorf("recorded %+v", f.steps)
	}
	if d := f.steps[0].Defined; d == nil || d.Resource != widgets.Resource || len(d.Versions) == 0 || f.steps[1].Defined != nil || f.steps[2].Defined == nil || len(f.steps[2].Defined.Versions) != 0 {
		t.Errorf("the records must say what was defined and what was deleted: %+v", f.steps)
	}
	if len(f.faults) != 0 {
		t.Errorf("faults %+v", f.faults)
	}
}

// Any other error is one, as before.
func TestADefinitionThatFailsIsAnError(t *testing.T) {
	f := &fake{failing: "define widgets"}
	if err := perform(t, f, scenario.Step{Action: scenario.Define, Definition: widgets}); err == nil || f.steps[0].Error == "" || f.steps[0].Refused != "" {
		t.Errorf("error %v, recorded %+v", err, f.steps)
	}
}
