package search

import (
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
)

func TestEveryScheduleIsCounted(t *testing.T) {
	// With two servers 13 events are possible at first. Together with the empty schedule: 1 + 13
	if got := countSchedules(2, 1); got != 1+13 {
		t.Errorf("%d schedules of up to one event with two servers, want 14", got)
	}
	for _, servers := range []int{2, 3} {
		for events := range 4 {
			made, counted := len(enumerate(alphabet(servers), events)), countSchedules(servers, events)
			if uint64(made) != counted {
				t.Errorf("%d servers, %d events: %d made, %d counted", servers, events, made, counted)
			}
		}
	}
}

func TestEveryScheduleCanBeCarriedOut(t *testing.T) {
	spec := specOf("reference", 3)
	spec.Resources = 2
	gvrs, err := spec.GVRs()
	if err != nil {
		t.Fatal(err)
	}
	letters := alphabet(3)
	x := &exhaustive{spec: spec, gvrs: gvrs, letters: letters, all: enumerate(letters, 3)}
	seen := map[string]bool{}
	for place := range x.all {
		c, _ := x.Case(uint64(place) + 1)
		if err := c.Validate(); err != nil {
			t.Fatalf("schedule %d: %v", place+1, err)
		}
		lines, _ := Story(c)
		if text := strings.Join(lines, "\n"); seen[text] {
			t.Fatalf("schedule %d is there twice:\n%s", place+1, text)
		} else if len(c.Steps) < 4 { // all of them would not fit into memory
			seen[text] = true
		}
	}
}

// This is the negative control: with the feature switched off, even the first schedule, in which
// nothing happens, must show the violation.
func TestExhaustJudges(t *testing.T) {
	spec := Spec{Policy: None, From: older, To: newer, Servers: 2, Resources: 2}
	s, err := Exhaust(spec, 1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := s.Run(t.Context())
	if c.Schedules != 14 || c.Scope.Schedules != 14 || !c.Complete || len(c.Scope.Alphabet) != 13 {
		t.Errorf("%d schedules of %+v, complete %t", c.Schedules, c.Scope, c.Complete)
	}
	if c.Verdict.Outcome != invariant.OutcomeFail {
		t.Fatalf("%+v", c.Verdict)
	}
	for _, f := range c.Findings {
		if f.Invariant == "NoFalseNotFound" && f.Seed == 1 && f.Disturbances == 0 {
			return
		}
	}
	t.Errorf("findings %+v", c.Findings)
}

func TestWhatCannotBeExhaustedIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ servers, resources, events int }{
		"one server": {1, 1, 1}, "four servers": {4, 1, 1}, "all resources": {2, 0, 1}, "three resources": {2, 3, 1}, "no event": {2, 1, 0}, "too many": {3, 1, 6},
	} {
		spec := Spec{Policy: "reference", From: older, To: newer, Servers: c.servers, Resources: c.resources}
		if _, err := Exhaust(spec, c.events, Options{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
