package scenario

import (
	"strings"
	"testing"
)

// The expected versions are those in the output of 'kube-apiserver --help': "Options are:
// kube=1.34..1.37(default:1.37)" in v1.37.1, kube=1.33..1.36 in v1.36.3.
func TestWhatAServerCanEmulate(t *testing.T) {
	for _, c := range []struct{ version, emulated, want string }{ // want is part of the error; "" means no error
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
		err := Emulable(c.version, c.emulated)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s as %q: %v, want an error about %q", c.version, c.emulated, err, c.want)
		}
	}
}

// Validate rejects a plan if a server would refuse its emulated version at some start. It must use
// the version that the server has at that start.
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
