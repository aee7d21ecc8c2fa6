package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

// spoilingStage is a stage on which documents can fail: three fetches of each do.
type spoilingStage struct{ stage }

func (s *spoilingStage) BreakDiscovery(server, path string, how fault.DiscoveryFailure) error {
	return s.act("spoil " + server + path + " " + string(how))
}
func (s *spoilingStage) RestoreDiscovery(server, path string) (int, error) {
	return 3, s.act("mend " + server + path)
}

func TestASpoiltDocumentIsMendedAndRecorded(t *testing.T) {
	s := &spoilingStage{}
	step := func(action scenario.Action, path string, how fault.DiscoveryFailure) scenario.Step {
		return scenario.Step{Action: action, Server: "a", Path: path, Failure: how}
	}
	h, err := performOn(t, t.Context(), s, &s.stage, step(scenario.BreakDiscovery, "/api", fault.ServerError), step(scenario.RestoreDiscovery, "/api", fault.ServerError),
		step(scenario.BreakDiscovery, "/apis", fault.BreaksOff))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"spoil a/api ", "mend a/api", "spoil a/apis breaks-off", "mend a/apis"}; !slices.Equal(s.acts, want) {
		t.Errorf("the cluster was asked for %q, want %q", s.acts, want)
	}
	if len(h.Faults) != 2 {
		t.Fatalf("%d faults recorded, want one for each document", len(h.Faults))
	}
	for i, f := range h.Faults {
		if f.Kind != "break-discovery" || f.To != "a" || f.From != "" || f.Blocks || f.Evidence.Affected != 3 || f.ID != i+1 {
			t.Errorf("recorded %+v", f)
		}
		if want := [...]string{"GET /api fails for peers", "GET /apis breaks off for peers"}[i]; f.Detail != want {
			t.Errorf("recorded as %q, want %q", f.Detail, want)
		}
	}
}

func TestSpoilingNeedsABackendThatCan(t *testing.T) {
	step := scenario.Step{Action: scenario.BreakDiscovery, Server: "a", Path: "/api"}
	if err := checkSpoils(scenario.Plan{Steps: []scenario.Step{step}}, &stage{}); !errors.Is(err, errCannotSpoil) {
		t.Errorf("before anything is started: %v", err)
	}
	if err := checkSpoils(scenario.Plan{Steps: []scenario.Step{{Action: scenario.Sweep}}}, &stage{}); err != nil {
		t.Errorf("a plan that spoils nothing is refused: %v", err)
	}
	s := &spoilingStage{}
	step.Action = scenario.RestoreDiscovery
	if _, err := performOn(t, t.Context(), s, &s.stage, step); err == nil || !strings.Contains(err.Error(), "/api of a does not fail") {
		t.Errorf("mend what is well: %v", err)
	}
}
