package step_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/scenario"
)

// crowded is a fake that sends crowds.
type crowded struct {
	fake
	refuse bool
}

func (c *crowded) Gather(_ context.Context, server string) (func(), error) {
	if c.refuse {
		return nil, &scenario.RefusedStep{Err: errors.New("no crowd at " + server + ": nothing crosses")}
	}
	return func() { _ = c.act("disperse at " + server) }, c.act("gather at " + server)
}

// A crowd ends with its step, or at the end of the run. It is no disturbance.
func TestCrowdsBeginAndEnd(t *testing.T) {
	c := &crowded{}
	with := config(&c.fake, c)
	with.Load = c
	err := performWith(t, t.Context(), with, twoServers,
		at(scenario.StartCrowd, "a"), at(scenario.StartCrowd, "b"), at(scenario.EndCrowd, "b"), at(scenario.StartCrowd, "b"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"gather at a", "gather at b", "disperse at b", "gather at b", "disperse at a", "disperse at b"}
	if diff := cmp.Diff(want, c.done()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, s := range c.steps {
		if s.Disturbs {
			t.Errorf("%s is taken for a disturbance", s.Sentence)
		}
	}
}

func TestCrowdsThatCannotBe(t *testing.T) {
	refusing := &crowded{refuse: true}
	with := config(&refusing.fake, refusing)
	with.Load = refusing
	err := performWith(t, t.Context(), with, twoServers, at(scenario.StartCrowd, "a"), at(scenario.EndCrowd, "a"), at(scenario.Kill, "b"))
	if err != nil || len(refusing.steps) != 3 || refusing.steps[0].Refused != "no crowd at a: nothing crosses" || refusing.steps[0].Error != "" {
		t.Errorf("error %v, steps %+v", err, refusing.steps)
	}
	without := &fake{}
	err = perform(t, without, at(scenario.StartCrowd, "a"), at(scenario.EndCrowd, "a"))
	if err != nil || !strings.Contains(without.steps[0].Refused, "no crowd: this run sends none; choose backend local") {
		t.Errorf("a load without crowds: error %v, steps %+v", err, without.steps)
	}
	c := &crowded{}
	with = config(&c.fake, c)
	with.Load = c
	err = performWith(t, t.Context(), with, twoServers, at(scenario.StartCrowd, "a"), at(scenario.StartCrowd, "a"))
	if err == nil || !strings.Contains(err.Error(), "there is one already") {
		t.Errorf("two at one server: error %v", err)
	}
	if err := performWith(t, t.Context(), with, twoServers, at(scenario.EndCrowd, "a")); err == nil || !strings.Contains(err.Error(), "there is no crowd") {
		t.Errorf("none to end: error %v", err)
	}
}
