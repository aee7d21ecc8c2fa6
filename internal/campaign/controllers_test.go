package campaign

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim/search"
)

// about returns the steps about controllers.
func about(p scenario.Plan) (all []scenario.Step) {
	for _, s := range p.Steps {
		if s.AboutControllers() {
			all = append(all, s)
		}
	}
	return all
}

// Every schedule in which servers of two versions run has controllers and objects for them. Its
// other steps stay in their order. None of the steps about controllers can end it. A seed always
// gives the same.
func TestSchedulesWithControllers(t *testing.T) {
	spec := search.Spec{Policy: scenario.SubjectBuiltin, From: "v1.36.3", To: "v1.37.1", Servers: 3, Resources: 6}
	var choosers [2]*chooser
	for i := range choosers {
		var err error
		if choosers[i], err = newChooser(spec, 1, 1, i > 0); err != nil {
			t.Fatal(err)
		}
	}
	ways, kinds := map[string]int{}, map[scenario.Propagation]int{}
	controlled, restarted, fields := 0, 0, map[string]bool{}
	const seeds = 300
	for seed := range uint64(seeds) {
		bare, err := choosers[0].of(seed)
		if err != nil {
			t.Fatal(err)
		}
		s, err := choosers[1].of(seed)
		if err != nil {
			t.Fatal(err)
		}
		again, err := choosers[1].of(seed)
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Fatalf("seed %d gives two schedules, error %v", seed, err)
		}
		steps := about(s.plan)
		if rest := slices.DeleteFunc(slices.Clone(s.plan.Steps), scenario.Step.AboutControllers); !reflect.DeepEqual(rest, bare.plan.Steps) {
			t.Fatalf("seed %d: the other steps are %v, want %v", seed, rest, bare.plan.Steps)
		}
		if len(steps) == 0 {
			if skewed(bare.plan) >= 0 {
				t.Fatalf("seed %d: no controllers, although its servers differ", seed)
			}
			continue
		}
		controlled++
		starts := 0
		for i, step := range steps {
			if !step.Optional {
				t.Fatalf("seed %d: %s can end the schedule", seed, step)
			}
			if step.Action == scenario.CreateObjects && len(step.Objects.Workloads) > 0 {
				fields[step.Objects.Workloads[0].Field] = true
				if !slices.ContainsFunc(steps[i+1:], func(s scenario.Step) bool {
					return s.Action == scenario.DeleteNamespace && s.Objects.Name == step.Objects.Name
				}) {
					t.Fatalf("seed %d: workloads are not deleted: %v", seed, steps)
				}
			}
			switch step.Action {
			case scenario.StartControllers:
				starts++
				if step.Version != "v1.36.3" {
					t.Fatalf("seed %d: %s, which is newer than a server", seed, step)
				}
				ways[step.Server]++
			case scenario.DeleteOwners:
				kinds[step.Propagation]++
			case scenario.CollectObjects:
				if i != len(steps)-1 {
					t.Fatalf("seed %d: something comes after the collection: %v", seed, steps)
				}
			}
		}
		if starts > 1 {
			restarted++
		}
		if s.plan.Bounds.Collection != collection || steps[len(steps)-1].Action != scenario.CollectObjects {
			t.Fatalf("seed %d: the controllers have %s, and the last step is %s", seed, s.plan.Bounds.Collection, steps[len(steps)-1])
		}
	}
	if controlled < seeds/2 || restarted < controlled/3 || restarted > 2*controlled/3 {
		t.Errorf("of %d schedules %d have controllers, and %d start them again", seeds, controlled, restarted)
	}
	if len(fields) < 2 {
		t.Errorf("workloads have the fields %v only", fields)
	}
	if len(ways) != 4 || len(kinds) != len(scenario.Propagations) {
		t.Errorf("ways to the servers: %v; propagation: %v", ways, kinds)
	}
}

// Schedules whose servers have one version all the time have no controllers.
func TestEqualServersHaveNoControllers(t *testing.T) {
	p := &scenario.Plan{Servers: []scenario.Server{{Name: "a", Version: "v1.36.3"}, {Name: "b", Version: "v1.36.3"}}}
	p.Soak(time.Second)
	p.Restart("a")
	p.Soak(time.Second)
	for seed := range uint64(20) {
		if control(p, seed, "v1.36.3", nil); len(p.Steps) != 3 {
			t.Fatalf("seed %d: %v", seed, p.Steps)
		}
	}
}

// A schedule counts as one with controllers only if they were at work on its objects.
func TestWhichSchedulesHadControllers(t *testing.T) {
	dependent := history.Object{Kind: "ConfigMap", Namespace: owned.Name, Name: "x", Owners: []history.Owner{{Kind: "Gadget"}}}
	loose, elsewhere := dependent, dependent
	loose.Owners, elsewhere.Namespace = nil, "skewproof"
	collects := history.Request{User: "system:serviceaccount:kube-system:generic-garbage-collector"}
	for name, c := range map[string]struct {
		object  history.Object
		request history.Request
		want    bool
	}{
		"at work":                  {dependent, collects, true},
		"no controllers":           {dependent, history.Request{User: "system:apiserver"}, false},
		"objects without owners":   {loose, collects, false},
		"only objects of the load": {elsewhere, collects, false},
	} {
		if got := controllersWorked(&history.History{Objects: []history.Object{c.object}, Requests: []history.Request{c.request}}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The command line of a schedule, and a campaign that is continued, have the controllers of the
// campaign.
func TestControllersOfACampaignInParts(t *testing.T) {
	for _, controllers := range []bool{true, false} {
		o := options(t, 2)
		o.Controllers = controllers
		o.Earlier = &reports.Campaign{Schedules: 9, FirstSeed: 1, Real: &reports.RealCampaign{NextSeed: 40, Controllers: controllers, ControllersWorked: 7}}
		c, err := New(o, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.report(false).Real; got.Controllers != controllers || got.ControllersWorked != 7 {
			t.Errorf("controllers %v: the report says %v, %d", controllers, got.Controllers, got.ControllersWorked)
		}
		if got := slices.Contains(c.command(5), "--controllers"); got != controllers {
			t.Errorf("controllers %v: %q", controllers, c.command(5))
		}
	}
}
