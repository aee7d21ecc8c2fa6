package scenarios

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What upstream's own validation says is quoted by 'kube-apiserver --help': "Options are: kube=1.34..1.37(default:1.37)" in v1.37.1, kube=1.33..1.36 in v1.36.3.
func TestWhatAServerCanEmulate(t *testing.T) {
	for _, c := range []struct{ version, emulated, want string }{ // want is part of the error, "" for none
		{"v1.37.1", "", ""},
		{"v1.37.1", "1.37", ""},
		{"v1.37.1", "1.36", ""},
		{"v1.37.1", "1.34", ""},
		{"v1.37.1", "1.33", "kube-apiserver v1.37.1 emulates 1.34 to 1.37, and not 1.33"},
		{"v1.37.1", "1.38", "emulates 1.34 to 1.37, and not 1.38"},
		{"v1.36.3", "1.33", ""},
		{"v1.36.3", "1.37", "emulates 1.33 to 1.36, and not 1.37"},
		{"v1.33.0", "1.30", "emulates 1.31 to 1.33, and not 1.30"},
		{"v1.30.14", "1.30", "emulates no other version: --emulated-version came with 1.31"},
		{"v1.37.1+without.batch.v1", "1.36", ""},
		{"v1.37.1", "1.36.3", "want a minor version without a patch"},
		{"v1.37.1", "v1.36", "want a minor version without a patch"},
		{"v1.37.1", "1", "want a minor version without a patch"},
		{"v1.37.1", "1.036", "want a minor version without a patch"},
		{"v1.37.1", "2.36", "want a minor version without a patch"},
		{"tomorrow's", "1.36", "none of Kubernetes"},
	} {
		err := emulable(c.version, c.emulated)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s as %q: %v, want an error about %q", c.version, c.emulated, err, c.want)
		}
	}
}

// A plan is refused for what a server of it would refuse at that start: by the version that it has then.
func TestValidateKnowsWhoCanEmulateWhat(t *testing.T) {
	as := func(minor string) *Setup { return &Setup{EmulatedVersion: minor} }
	plan := func(first *Setup, steps ...Step) *Plan {
		return &Plan{Servers: []Server{{Name: "a", Version: "v1.36.3", Setup: first}, {Name: "b", Version: "v1.37.1"}}, Steps: steps}
	}
	upgrade := Step{Action: Replace, Server: "a", Version: "v1.37.1"}
	for name, c := range map[string]struct {
		plan *Plan
		want string
	}{
		"from the first start":      {plan(as("1.33")), ""},
		"too old a one, at first":   {plan(as("1.32")), `server "a": setup: kube-apiserver v1.36.3 emulates`},
		"a newer one, later":        {plan(nil, Step{Action: Restart, Server: "a", Setup: as("1.37")}), "v1.36.3 emulates 1.33 to 1.36"},
		"its own, upgraded":         {plan(nil, upgrade, Step{Action: Restart, Server: "a", Setup: as("1.37")}), ""},
		"too old a one, upgraded":   {plan(nil, upgrade, Step{Action: Restart, Server: "a", Setup: as("1.33")}), "v1.37.1 emulates 1.34 to 1.37"},
		"with the upgrade":          {plan(nil, Step{Action: Replace, Server: "a", Version: "v1.37.1", Setup: as("1.36")}), ""},
		"another one's upgrade":     {plan(nil, Step{Action: Stop, Server: "b"}, Step{Action: Start, Server: "b", Setup: as("1.33")}), `server "b"`},
		"another one's, as it ends": {plan(nil, upgrade, Step{Action: Stop, Server: "a"}, Step{Action: Start, Server: "a", Setup: as("1.35")}), ""},
	} {
		err := c.plan.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want an error about %q", name, err, c.want)
		}
	}
}

// Of one minor version or of two: no server has another API than FROM before every program is TO, and each then gets its own back by itself.
func TestEmulatedUpgradeChangesProgramsFirstAndAPIsLater(t *testing.T) {
	for from, emulated := range map[string]string{"v1.36.3": "1.36", "v1.35.4": "1.35"} {
		plan := emulatedUpgrade.Plan(parameters(3, from, "v1.37.1"))
		want := []Server{}
		for _, name := range []string{"a", "b", "c"} {
			want = append(want, Server{Name: name, Version: "v1.37.1", Setup: &Setup{EmulatedVersion: emulated}})
		}
		if diff := cmp.Diff(want, plan.SetUps()); diff != "" {
			t.Errorf("from %s (-want +got):\n%s", from, diff)
		}
		var replaced, restarted string
		for _, s := range plan.Steps {
			switch s.Action {
			case Replace:
				replaced += s.Server
				if restarted != "" {
					t.Errorf("%s after %s got an API of its own", s, restarted)
				}
			case Restart:
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

// A version that is dropped is watched for longer than it is remembered, with nothing else happening that would refresh what servers know.
func TestADroppedVersionIsWatchedUntilItIsForgotten(t *testing.T) {
	for _, s := range []Scenario{crdVersionGracePeriod, aggregatedAPIGracePeriod} {
		plan := s.Plan(parameters(3, "v1.36.3", "v1.37.1"))
		var last []string
		var alone time.Duration
		for _, step := range plan.Steps {
			if step.Disturbs() {
				alone = 0
			}
			if step.Action == Define {
				last = step.Definition.Versions
			}
			if step.Action == Soak {
				alone += step.For
			}
		}
		if alone < gracePeriod+plan.Bounds.Convergence || !cmp.Equal(last, []string{"v2"}) {
			t.Errorf("%s: %v is left, and watched for %s", s.Name, last, alone)
		}
	}
}
