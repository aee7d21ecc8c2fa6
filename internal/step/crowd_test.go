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

func (c *crowded) Gather(_ context.Context, server string, kind scenario.Crowd) (func(), error) {
	if c.refuse {
		return nil, errors.New("nothing crosses")
	}
	return func() { _ = c.act("disperse " + string(kind) + " at " + server) }, c.act("gather " + string(kind) + " at " + server)
}

func crowdAt(server string, kind scenario.Crowd) scenario.Step {
	return scenario.Step{Action: scenario.StartCrowd, Server: server, Crowd: kind}
}

// A crowd ends with its step, or at the end of the run. It is no disturbance.
func TestCrowdsBeginAndEnd(t *testing.T) {
	c := &crowded{}
	with := config(&c.fake, c)
	with.Load = c
	err := performWith(t, t.Context(), with, twoServers,
		crowdAt("a", scenario.CrowdOfWatches), crowdAt("b", scenario.CrowdOfBodies), at(scenario.EndCrowd, "b"), crowdAt("b", scenario.CrowdOfAbandoned))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"gather watches at a", "gather slow-bodies at b", "disperse slow-bodies at b", "gather abandoned at b", "disperse watches at a", "disperse abandoned at b",
	}
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
	if err := performWith(t, t.Context(), with, twoServers, crowdAt("a", scenario.CrowdOfWatches)); err == nil || !strings.Contains(err.Error(), "nothing crosses") {
		t.Errorf("error %v", err)
	}
	if err := perform(t, &fake{}, crowdAt("a", scenario.CrowdOfWatches)); err == nil || !strings.Contains(err.Error(), "choose another scenario") {
		t.Errorf("a load without crowds: error %v", err)
	}
	c := &crowded{}
	with = config(&c.fake, c)
	with.Load = c
	err := performWith(t, t.Context(), with, twoServers, crowdAt("a", scenario.CrowdOfWatches), crowdAt("a", scenario.CrowdOfBodies))
	if err == nil || !strings.Contains(err.Error(), "a caller keeps hundreds of watches open there already") {
		t.Errorf("two at one server: error %v", err)
	}
	if err := performWith(t, t.Context(), with, twoServers, at(scenario.EndCrowd, "a")); err == nil || !strings.Contains(err.Error(), "there is no crowd") {
		t.Errorf("none to end: error %v", err)
	}
}
