package scenarios

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/scenario"
)

// FROM and TO differ by one minor version or by two. No server has an API other than FROM's before
// every server runs the program of TO. Then each server is restarted with its own API.
func TestEmulatedUpgradeChangesProgramsFirstAndAPIsLater(t *testing.T) {
	for from, emulated := range map[string]string{"v1.36.3": "1.36", "v1.35.4": "1.35"} {
		plan := emulatedUpgrade.Plan(parameters(3, from, "v1.37.1"))
		want := []scenario.Server{}
		for _, name := range []string{"a", "b", "c"} {
			want = append(want, scenario.Server{Name: name, Version: "v1.37.1", Setup: &scenario.Setup{EmulatedVersion: emulated}})
		}
		if diff := cmp.Diff(want, plan.SetUps()); diff != "" {
			t.Errorf("from %s (-want +got):\n%s", from, diff)
		}
		var replaced, restarted string
		for _, s := range plan.Steps {
			switch s.Action {
			case scenario.Replace:
				replaced += s.Server
				if restarted != "" {
					t.Errorf("%s after %s got an API of its own", s, restarted)
				}
			case scenario.Restart:
				restarted += s.Server
				if s.Setup != nil || replaced != "abc" {
					t.Errorf("%s, when %s have been replaced", s, replaced)
				}
			}
		}
		if restarted != "abc" {
			t.Errorf("restarted %s", restarted)
		}
	}
	plan := emulatedUpgrade.Plan(parameters(3, "v1.30.14", "v1.37.1"))
	if err := plan.Validate(); err == nil {
		t.Error("further than a kube-apiserver can emulate: no error")
	}
}

// The scenario watches a dropped version for longer than servers remember it. During this time
// there is no other change that would refresh what the servers know.
func TestADroppedVersionIsWatchedUntilItIsForgotten(t *testing.T) {
	for _, s := range []scenario.Scenario{crdVersionGracePeriod, aggregatedAPIGracePeriod} {
		plan := s.Plan(parameters(3, "v1.36.3", "v1.37.1"))
		var last []string
		var alone time.Duration
		for _, step := range plan.Steps {
			if step.Disturbs() {
				alone = 0
			}
			if step.Action == scenario.Define {
				last = step.Definition.Versions
			}
			if step.Action == scenario.Soak {
				alone += step.For
			}
		}
		if alone < gracePeriod+plan.Bounds.Convergence || !cmp.Equal(last, []string{"v2"}) {
			t.Errorf("%s: %v is left, and watched for %s", s.Name, last, alone)
		}
	}
}
