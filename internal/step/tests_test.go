package step_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/scenario"
)

// tested is a fake that runs Kubernetes' tests.
type tested struct{ fake }

func (c *tested) StartTests(_ context.Context, version, through string, t scenario.Tests) error {
	return c.act("start " + strings.Join(t.Specs, "+") + " " + version + " through " + through)
}
func (c *tested) AwaitTests(_ context.Context, limit time.Duration) error {
	return c.act("await tests for " + limit.String())
}

var testSteps = []scenario.Step{
	{Action: scenario.StartTests, Version: "v1.37.1", Server: "b", Tests: &scenario.Tests{Specs: []string{"x", "y"}}},
	{Action: scenario.Restart, Server: "a"}, {Action: scenario.AwaitTests, For: time.Minute},
}

func TestStepsAboutTestsReachTheCluster(t *testing.T) {
	c := &tested{}
	if err := performWith(t, t.Context(), config(&c.fake, c), twoServers, testSteps...); err != nil {
		t.Fatal(err)
	}
	want := []string{"start x+y v1.37.1 through b", "replace a", "await tests for 1m0s"}
	if diff := cmp.Diff(want, c.done()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTestsThatTheClusterCannotRunAreRefused(t *testing.T) {
	f := &fake{}
	err := perform(t, f, testSteps...)
	if len(f.acts) > 0 || err == nil || !strings.Contains(err.Error(), "cannot run Kubernetes' own tests") {
		t.Errorf("got %v", err)
	}
}
