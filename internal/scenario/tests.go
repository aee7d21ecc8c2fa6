package scenario

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Tests are some of the specs of Kubernetes' own end-to-end tests, by their full names as 'e2e.test
// --list-tests' prints them.
type Tests struct {
	Specs []string `json:"specs"`
}

func (t *Tests) validate() error {
	if t == nil || len(t.Specs) == 0 {
		return errors.New("no spec of Kubernetes' tests is named")
	}
	names := slices.Sorted(slices.Values(t.Specs))
	for i, name := range names {
		switch {
		case name == "":
			return errors.New("the name of a spec is empty")
		case i > 0 && name == names[i-1]:
			return fmt.Errorf("spec %q is named twice", name)
		}
	}
	return nil
}

// StartTests starts Kubernetes' tests of a version. They are clients of a server, or of the load
// balancer if through is empty. The next steps are carried out while the tests run.
func (plan *Plan) StartTests(version, through string, t Tests) {
	plan.Add(Step{Action: StartTests, Version: version, Server: through, Tests: &t})
}

// AwaitTests waits until the tests have ended. The plan fails if they take longer than the limit.
func (plan *Plan) AwaitTests(limit time.Duration) { plan.Add(Step{Action: AwaitTests, For: limit}) }

// TestVersions lists the versions of Kubernetes' tests that the plan needs, each once, in order of
// first use.
func (plan *Plan) TestVersions() []string { return plan.versionsOf(StartTests) }

// HasTests reports whether the plan starts Kubernetes' tests.
func (plan *Plan) HasTests() bool {
	return slices.ContainsFunc(plan.Steps, Step.AboutTests)
}

// AboutTests reports whether the step is about Kubernetes' tests.
func (s Step) AboutTests() bool { return s.Action == StartTests || s.Action == AwaitTests }

// test applies a step about tests. Only one set of tests can run at a time.
func (s *State) test(step Step) error {
	switch {
	case step.Action == StartTests && step.Server != "" && s.server(step.Server) == nil:
		return fmt.Errorf("%s: no server %q in the plan", step.Action, step.Server)
	case step.Action == StartTests && s.tests:
		return fmt.Errorf("%s: tests run already: wait for their end first", step.Action)
	case step.Action == AwaitTests && !s.tests:
		return fmt.Errorf("%s: no step before has started tests", step.Action)
	}
	s.tests = step.Action == StartTests
	return nil
}
