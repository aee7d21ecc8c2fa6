package scenario

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// Objects are the objects on which controllers act, in their own namespace: owners, and ConfigMaps
// that depend on them. The owners are of up to three resources: a cluster-scoped resource that only
// some servers serve, a namespaced resource that only some servers serve, and ConfigMaps.
type Objects struct {
	// Name is the name of the namespace. The names of the objects begin with it.
	Name string `json:"name"`
	// Dependents is the number of dependents of each owner.
	Dependents int `json:"dependents"`
	// Of is the custom resource of the only owner, which a step before has defined. Nil: the owners
	// are of the resources above.
	Of *Definition `json:"of,omitempty"`
	// Held is true if each owner in the namespace has a finalizer that no controller removes. They
	// and the namespace cannot go before a step releases them.
	Held bool `json:"held,omitempty"`
	// Workloads are in the namespace instead of owners and dependents.
	Workloads []Workload `json:"workloads,omitempty"`
}

// Workload is an object for which controllers make others. It is as small as possible.
type Workload struct {
	history.GVR
	Kind string `json:"kind"`
	// Field is the path of one field that the workload has in addition, in the form of
	// recorded.FieldSkew; "" for none.
	Field string `json:"field,omitempty"`
}

// Propagation says what happens to the dependents of deleted owners, by the names in the API.
type Propagation string

// The propagation policies.
const (
	Background Propagation = "Background" // the owner is deleted at once, and its dependents later
	Foreground Propagation = "Foreground" // the owner is deleted after its dependents
	Orphan     Propagation = "Orphan"     // the dependents stay
)

// Propagations lists all policies.
var Propagations = []Propagation{Background, Foreground, Orphan}

func (o *Objects) validate() error {
	switch {
	case o == nil || o.Name == "":
		return errors.New("no name of the objects given")
	case len(o.Workloads) > 0 && (o.Dependents > 0 || o.Of != nil || o.Held):
		return fmt.Errorf("objects %s: a namespace with workloads has no owners of its own", o.Name)
	case len(o.Workloads) > 0:
		return nil
	case o.Dependents < 1:
		return fmt.Errorf("objects %s: want at least one dependent, not %d", o.Name, o.Dependents)
	case o.Of == nil:
		return nil
	}
	if err := o.Of.validate(); err != nil {
		return fmt.Errorf("objects %s: %w", o.Name, err)
	}
	return nil
}

func (s Step) validObjects() error {
	if err := s.Objects.validate(); err != nil {
		return fmt.Errorf("%s: %w", s.Action, err)
	}
	if s.Action == CreateObjects && (len(s.Objects.Workloads) > 0) != (s.Server != "") {
		return fmt.Errorf("%s %s: workloads are created through a server, and other objects past all faults", s.Action, s.Objects.Name)
	}
	if s.Action == ReleaseObjects && !s.Objects.Held {
		return fmt.Errorf("%s %s: they are not held", s.Action, s.Objects.Name)
	}
	if s.Action == MigrateObjects && s.For <= 0 {
		return fmt.Errorf("%s %s: want a positive time", s.Action, s.For)
	}
	if s.Action == DeleteOwners && !slices.Contains(Propagations, s.Propagation) {
		return fmt.Errorf("%s %s: propagation %q: want one of %q", s.Action, s.Objects.Name, s.Propagation, Propagations)
	}
	return nil
}

// CreateObjects and the methods after it add steps about objects.
func (plan *Plan) CreateObjects(o Objects) { plan.Add(Step{Action: CreateObjects, Objects: &o}) }

// CreateWorkloads adds a step that creates workloads through a server, as its clients reach it.
func (plan *Plan) CreateWorkloads(o Objects, through string) {
	plan.Add(Step{Action: CreateObjects, Objects: &o, Server: through})
}
func (plan *Plan) CreateQuota(o Objects) { plan.Add(Step{Action: CreateQuota, Objects: &o}) }
func (plan *Plan) DeleteOwners(o Objects, how Propagation) {
	plan.Add(Step{Action: DeleteOwners, Objects: &o, Propagation: how})
}
func (plan *Plan) RewriteObjects(o Objects, through string) {
	plan.Add(Step{Action: RewriteObjects, Objects: &o, Server: through})
}
func (plan *Plan) DeleteNamespace(o Objects) { plan.Add(Step{Action: DeleteNamespace, Objects: &o}) }

// MigrateObjects waits for at most Bounds.Collection.
func (plan *Plan) MigrateObjects(o Objects, through string) {
	plan.Add(Step{Action: MigrateObjects, Objects: &o, Server: through, For: plan.Bounds.Collection})
}

// ReleaseObjects removes the finalizers that hold objects.
func (plan *Plan) ReleaseObjects(o Objects) { plan.Add(Step{Action: ReleaseObjects, Objects: &o}) }

// Collect waits until controllers have deleted everything that they must delete. It waits for at
// most Bounds.Collection.
func (plan *Plan) Collect() { plan.Add(Step{Action: CollectObjects, For: plan.Bounds.Collection}) }

// OutlastCollection waits for as long as controllers may take, and long enough after that to see
// what they have done.
func (plan *Plan) OutlastCollection() { plan.Soak(plan.Bounds.Collection + 5*time.Second) }

// StartControllers starts controllers, or restarts them. They are clients of a server, or of the
// load balancer if through is empty.
func (plan *Plan) StartControllers(version, through string) {
	plan.Add(Step{Action: StartControllers, Version: version, Server: through})
}

// StartCandidate starts controllers with leader election, beside those that run already. They are
// clients of that server, and the only ones of it.
func (plan *Plan) StartCandidate(version, through string) {
	plan.Add(Step{Action: StartControllers, Version: version, Server: through, Elect: true})
}

// StopControllers stops the controllers.
func (plan *Plan) StopControllers() { plan.Add(Step{Action: StopControllers}) }

// ObjectNames lists the names of the plan's [Objects], each once.
func (plan *Plan) ObjectNames() []string {
	var names []string
	for _, s := range plan.Steps {
		if s.Objects != nil && !slices.Contains(names, s.Objects.Name) {
			names = append(names, s.Objects.Name)
		}
	}
	return names
}

// Elects reports whether the plan starts controllers with leader election.
func (plan *Plan) Elects() bool {
	return slices.ContainsFunc(plan.Steps, func(s Step) bool { return s.Elect })
}

// ReadsEtcd reports whether the run must read etcd to know which objects exist. It must if the plan
// has controllers, informers, or objects for them.
func (plan *Plan) ReadsEtcd() bool {
	return plan.Informers || slices.ContainsFunc(plan.Steps, Step.AboutControllers)
}

// ControllerVersions lists the versions of kube-controller-manager that the plan needs, each once,
// in order of first use.
func (plan *Plan) ControllerVersions() []string { return plan.versionsOf(StartControllers) }

// versionsOf lists the versions in steps with an action, each once, in order of first use.
func (plan *Plan) versionsOf(a Action) []string {
	var versions []string
	for _, s := range plan.Steps {
		if s.Action == a && !slices.Contains(versions, s.Version) {
			versions = append(versions, s.Version)
		}
	}
	return versions
}

// changeObjects applies a step about objects.
func (s *State) changeObjects(step Step) error {
	if step.Action == CollectObjects {
		return nil
	}
	name := step.Objects.Name
	created := slices.Contains(s.objects, name)
	switch {
	case step.Action == ReleaseObjects:
		i := slices.Index(s.held, name)
		if i < 0 {
			return fmt.Errorf("%s: no step before has created %s, or they were released", step.Action, name)
		}
		s.held = slices.Delete(s.held, i, i+1)
	case (step.Server != "" || step.Action == RewriteObjects || step.Action == MigrateObjects) && s.server(step.Server) == nil:
		return fmt.Errorf("%s: no server %q in the plan", step.Action, step.Server)
	case step.Action != CreateObjects && !created:
		return fmt.Errorf("%s: no step before has created %s", step.Action, name)
	case step.Action == CreateObjects && created:
		return fmt.Errorf("%s: %s exists already", step.Action, name)
	case step.Action == CreateObjects:
		s.objects = append(s.objects, name)
		if step.Objects.Held {
			s.held = append(s.held, name)
		}
	case step.Action == DeleteNamespace:
		s.objects = slices.DeleteFunc(s.objects, func(o string) bool { return o == name })
	}
	return nil
}

// control applies a step about controllers.
func (s *State) control(step Step) error {
	switch {
	case step.Action == StartControllers && step.Server != "" && s.server(step.Server) == nil:
		return fmt.Errorf("%s: no server %q in the plan", step.Action, step.Server)
	case step.Elect && (step.Action != StartControllers || step.Server == ""):
		return fmt.Errorf("%s: leader election is for controllers that are clients of one server", step.Action)
	case step.Action == StopControllers && !s.controllers:
		return fmt.Errorf("%s: no controllers run", step.Action)
	}
	s.controllers = step.Action == StartControllers
	return nil
}

// AboutControllers reports whether the step is about controllers, or about objects for them.
func (s Step) AboutControllers() bool {
	return slices.Contains([]Action{StartControllers, StopControllers, CreateObjects, CreateQuota, DeleteOwners, DeleteNamespace,
		ReleaseObjects, RewriteObjects, MigrateObjects, CollectObjects}, s.Action)
}
