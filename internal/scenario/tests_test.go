package scenario

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestKubernetesTestsInAPlan(t *testing.T) {
	specs := &Tests{Specs: []string{"one", "two"}}
	start := Step{Action: StartTests, Version: "v1.37.9", Server: "b", Tests: specs}
	await := Step{Action: AwaitTests, For: time.Minute}
	balanced := Step{Action: StartTests, Version: "v1.37.9", Tests: specs}
	plan := Plan{Servers: stateServers, Steps: []Step{start, {Action: Restart, Server: "a"}, await, balanced, await}}
	if err := plan.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := plan.TestVersions(); !slices.Equal(got, []string{"v1.37.9"}) || !plan.HasTests() {
		t.Errorf("versions of the tests: %q", got)
	}
	if got := plan.Versions(); slices.Contains(got, "v1.37.9") {
		t.Errorf("the tests count as a server: %q", got)
	}
	for _, s := range []Step{start, await, balanced} {
		if s.Disturbs() || !s.AboutTests() || s.AboutControllers() {
			t.Errorf("%s: disturbs is %t, about tests is %t, about controllers is %t", s, s.Disturbs(), s.AboutTests(), s.AboutControllers())
		}
	}
	if got, want := start.String(), "start 2 specs of Kubernetes' own tests v1.37.9 as clients of b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := balanced.String(); !strings.HasSuffix(got, "clients of the load balancer") {
		t.Errorf("got %q", got)
	}
}

func TestKubernetesTestsThatCannotBeRun(t *testing.T) {
	specs := &Tests{Specs: []string{"one"}}
	start, await := Step{Action: StartTests, Version: "v1.37.1", Tests: specs}, Step{Action: AwaitTests, For: time.Minute}
	for want, steps := range map[string][]Step{
		"no version given":               {{Action: StartTests, Tests: specs}},
		"no spec of Kubernetes' tests":   {{Action: StartTests, Version: "v1.37.1"}},
		"the name of a spec is empty":    {{Action: StartTests, Version: "v1.37.1", Tests: &Tests{Specs: []string{"a", ""}}}},
		`spec "a" is named twice`:        {{Action: StartTests, Version: "v1.37.1", Tests: &Tests{Specs: []string{"a", "b", "a"}}}},
		`no server "z" in the plan`:      {{Action: StartTests, Version: "v1.37.1", Server: "z", Tests: specs}},
		"tests run already":              {start, start},
		"no step before has started":     {await},
		"want a positive time":           {start, {Action: AwaitTests}},
		"step 3: await-tests: no step b": {start, await, await},
	} {
		plan := Plan{Servers: stateServers, Steps: steps}
		if err := plan.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
