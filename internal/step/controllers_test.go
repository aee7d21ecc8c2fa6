package step_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/step"
)

// controlled is a fake with controllers. They take some time to delete what must be deleted.
type controlled struct {
	fake
	collected time.Duration // when they are done
}

func (c *controlled) StartControllers(_ context.Context, version, through string) error {
	return c.act("start controllers " + version + " through " + through)
}
func (c *controlled) StartCandidate(_ context.Context, version, through string) error {
	return c.act("start candidate " + version + " through " + through)
}
func (c *controlled) StopControllers(context.Context) error { return c.act("stop controllers") }
func (c *controlled) Create(_ context.Context, o scenario.Objects) error {
	return c.act("create " + o.Name)
}
func (c *controlled) CreateWorkloads(_ context.Context, o scenario.Objects, through string) error {
	return c.act("create workloads " + o.Name + " through " + through)
}
func (c *controlled) CreateQuota(_ context.Context, o scenario.Objects) error {
	return c.act("create quota " + o.Name)
}
func (c *controlled) DeleteOwners(_ context.Context, o scenario.Objects, how scenario.Propagation) error {
	return c.act("delete owners " + o.Name + " " + string(how))
}
func (c *controlled) Rewrite(_ context.Context, o scenario.Objects, through string) error {
	return c.act("rewrite " + o.Name + " through " + through)
}
func (c *controlled) DeleteNamespace(_ context.Context, o scenario.Objects) error {
	return c.act("delete namespace " + o.Name)
}
func (c *controlled) Migrate(_ context.Context, o scenario.Objects, through string) error {
	return c.act("migrate " + o.Name + " through " + through)
}
func (c *controlled) Migrated(context.Context, scenario.Objects) (bool, error) {
	return c.now >= c.collected, nil
}
func (c *controlled) Release(_ context.Context, o scenario.Objects) error {
	return c.act("release " + o.Name)
}
func (c *controlled) Collected(context.Context) (bool, error) { return c.now >= c.collected, nil }

// carryOut carries out steps about controllers.
func (c *controlled) carryOut(t *testing.T, objects step.Objects, steps ...scenario.Step) error {
	t.Helper()
	var e step.Executor
	config := step.Config{Cluster: c, Clock: c, Recorder: c, Load: c, Definer: c, Objects: objects}
	if err := e.Prepare(config, []scenario.Server{{Name: "a", Version: "v1.37.1"}, {Name: "b", Version: "v1.36.3"}}, steps); err != nil {
		return err
	}
	return e.Run(t.Context(), steps)
}

func TestStepsAboutControllersReachTheCluster(t *testing.T) {
	c, o := &controlled{}, &scenario.Objects{Name: "x", Dependents: 1, Held: true}
	err := c.carryOut(t, c,
		scenario.Step{Action: scenario.StartControllers, Version: "v1.36.3", Server: "b"}, scenario.Step{Action: scenario.CreateObjects, Objects: o},
		scenario.Step{Action: scenario.StartControllers, Version: "v1.36.3", Server: "a", Elect: true},
		scenario.Step{Action: scenario.MigrateObjects, Objects: o, Server: "b", For: time.Minute},
		scenario.Step{Action: scenario.RewriteObjects, Objects: o, Server: "b"}, scenario.Step{Action: scenario.CreateQuota, Objects: o},
		scenario.Step{Action: scenario.DeleteOwners, Objects: o, Propagation: scenario.Foreground},
		scenario.Step{Action: scenario.DeleteNamespace, Objects: o}, scenario.Step{Action: scenario.ReleaseObjects, Objects: o},
		scenario.Step{Action: scenario.CreateObjects, Server: "b", Objects: &scenario.Objects{Name: "y", Workloads: []scenario.Workload{{Kind: "Job"}}}},
		scenario.Step{Action: scenario.StopControllers})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"start controllers v1.36.3 through b", "create x", "start candidate v1.36.3 through a", "migrate x through b", "rewrite x through b", "create quota x", "delete owners x Foreground", "delete namespace x", "release x", "create workloads y through b", "stop controllers"}
	if diff := cmp.Diff(want, c.acts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The wait ends when the controllers are done, or a little after the time that they may take.
func TestCollect(t *testing.T) {
	o := &scenario.Objects{Name: "x", Dependents: 1}
	const began = 2 * time.Second // the steps before the second wait take that
	for name, c := range map[string]struct{ done, collected, migrated time.Duration }{
		"at once": {0, 0, began}, "soon": {3 * time.Second, 3 * time.Second, 3 * time.Second}, "never": {time.Hour, 65 * time.Second, began + 65*time.Second},
	} {
		f := &controlled{collected: c.done}
		if err := f.carryOut(t, f, scenario.Step{Action: scenario.CollectObjects, For: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if f.now != c.collected {
			t.Errorf("%s: the wait for a collection ended after %s, want %s", name, f.now, c.collected)
		}
		f = &controlled{collected: c.done}
		if err := f.carryOut(t, f, scenario.Step{Action: scenario.CreateObjects, Objects: o},
			scenario.Step{Action: scenario.MigrateObjects, Objects: o, Server: "b", For: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if f.now != c.migrated {
			t.Errorf("%s: the wait for a migration ended at %s, want %s", name, f.now, c.migrated)
		}
	}
}

func TestABackendWithoutControllersSaysSo(t *testing.T) {
	start := scenario.Step{Action: scenario.StartControllers, Version: "v1.36.3"}
	const want = "this backend runs no controllers"
	if err := perform(t, &fake{}, start); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("without controllers: %v", err)
	}
	c := &controlled{}
	if err := c.carryOut(t, nil, start); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("without objects: %v", err)
	}
}

// unwilling is a fake on which nothing about objects succeeds before some time.
type unwilling struct {
	controlled
	until time.Duration
}

func (u *unwilling) Create(context.Context, scenario.Objects) error {
	return errors.New("no server answers")
}

func (u *unwilling) Collected(context.Context) (bool, error) {
	if u.now < u.until {
		return false, errors.New("no server answers")
	}
	return u.controlled.Collected(context.Background())
}

// If an optional step fails, the plan goes on, and the history says why. An optional wait for a
// collection goes on until it is over, whoever answers. If the step is not optional, the plan ends.
func TestOptionalStepsDoNotEndAPlan(t *testing.T) {
	create := scenario.Step{Action: scenario.CreateObjects, Objects: &scenario.Objects{Name: "x", Dependents: 1}}
	collect := scenario.Step{Action: scenario.CollectObjects, For: time.Minute}
	for _, optional := range []bool{false, true} {
		create.Optional, collect.Optional = optional, optional
		u := &unwilling{until: 20 * time.Second}
		err := u.carryOut(t, u, create, scenario.Step{Action: scenario.Soak, For: time.Second})
		if optional != (err == nil) {
			t.Errorf("optional: %v; the plan ended with %v", optional, err)
		}
		last := u.steps[0]
		if optional && (last.Refused != "no server answers" || last.Error != "") || !optional && (last.Refused != "" || last.Error != "no server answers") {
			t.Errorf("optional: %v; the step says %+v", optional, last)
		}
		u = &unwilling{until: 20 * time.Second}
		err = u.carryOut(t, u, collect)
		if ended := u.now; optional != (err == nil) || optional && ended != 20*time.Second || !optional && ended != 0 {
			t.Errorf("optional: %v; the wait ended after %s with %v", optional, ended, err)
		}
	}
}
