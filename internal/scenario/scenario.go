// Package scenario is the model of a scenario: its plan with steps and setups, and the state of the
// cluster that follows from them. It is data. The catalogue is in the package scenarios.
package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
)

// Scenario is one entry of the catalogue.
type Scenario struct {
	// Name is stable. Users type it, and reports and JUnit files are matched by it.
	Name string `json:"name"`
	// Happens is a sentence for non-programmers about the changes and faults in the control plane.
	Happens string `json:"happens"`
	// Holds says what must be true meanwhile.
	Holds string `json:"holds"`
	// Source is the KEP clause or the issue behind it.
	Source string `json:"source"`
	// About names the invariants that the scenario tests. If a core invariant among them is
	// inconclusive, the run is inconclusive. An extended invariant has this effect only if strict.
	About []string `json:"about"`
	// MinServers is the minimum number of servers that the plan needs.
	MinServers int `json:"minServers"`
	// NeedsTwoVersions is true if the plan demands requests that only servers of another version
	// can serve. If From equals To, the run could only be inconclusive, so the command refuses it.
	NeedsTwoVersions bool `json:"needsTwoVersions,omitempty"`
	// Family is the part of the catalogue to which the scenario belongs.
	Family Family `json:"family"`
	// Labels select scenarios, in addition to family and name: "smoke", "conformance", "slow".
	Labels []string `json:"labels,omitempty"`
	// Limits say on which backends the scenario does not run.
	Limits Limits `json:"limits,omitzero"`
	// Control says in which control run the scenario must fail.
	Control Control `json:"control"`
	// Plan turns parameters into the steps to carry out. It is a pure function.
	Plan func(Parameters) Plan `json:"-"`
}

// Parameters are the user's choices.
type Parameters struct {
	Servers int    // number of apiservers
	From    string // the older version, such as "v1.36.3"
	To      string // the newer version; equal to From for a cluster of one version
	// Bounds are the times that the invariants allow. Scenarios derive their waits from them.
	Bounds history.Bounds
	// ReadOnly is for servers that already run. A plan leaves out the steps that change or harm
	// them, if the rest of the plan still proves something. Other plans stay whole;
	// [Plan.OnlyReads] rejects them.
	ReadOnly bool
}

// Mixed reports whether two versions take part.
func (p Parameters) Mixed() bool { return p.From != p.To }

// Plan is a scenario with its parameters filled in: the servers as first started, and the steps.
type Plan struct {
	Servers []Server `json:"servers"`
	Steps   []Step   `json:"steps"`
	// Traffic is the load; the zero value is the general load.
	Traffic Traffic `json:"traffic,omitempty"`
	// Nodes is the share, in percent, of the load's requests that a kubelet sends.
	Nodes int `json:"nodes,omitempty"`
	// Informers is true if informers run during the whole load. There is one through every server
	// and one through the load balancer, for each resource of owners ([Objects]).
	Informers bool             `json:"informers,omitempty"`
	Pressure  history.Pressure `json:"pressure"`
	Bounds    history.Bounds   `json:"bounds"`
}

// Server is an apiserver of the plan.
type Server struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Setup is the difference between its first start and the subject's configuration; nil: none.
	Setup *Setup `json:"setup,omitempty"`
}

// Action is the kind of a step.
type Action string

// The actions. If an action is about one server, this is Step.Server.
const (
	Soak    Action = "soak"    // let the load run for Step.For
	Outlast Action = "outlast" // let the load run until Step.For has passed since the last disturbance
	// Converge lets the load run until the servers answer as they must, or until Step.For has passed
	// since the last disturbance. Where the load cannot tell, it is Outlast.
	Converge Action = "converge"
	Sweep    Action = "sweep"   // ask every server for everything that merged discovery lists
	Start    Action = "start"   // start a server that is not running, as Step.Version if given
	Stop     Action = "stop"    // stop a server gracefully
	Kill     Action = "kill"    // kill -9
	Pause    Action = "pause"   // SIGSTOP
	Resume   Action = "resume"  // SIGCONT
	Restart  Action = "restart" // stop gracefully, start the same version again
	Replace  Action = "replace" // stop gracefully, start Step.Version on the same identity
	Inject   Action = "inject"  // switch Step.Fault on
	Heal     Action = "heal"    // switch the fault with Step.Label off

	// Define creates the custom resource, or the aggregated API, of Step.Definition, or gives it other
	// versions. Undefine deletes it.
	Define   Action = "define"
	Undefine Action = "undefine"
	// BreakDiscovery makes fetches of the discovery document at Step.Path by peers fail, as
	// Step.Failure says. RestoreDiscovery makes them succeed again.
	BreakDiscovery   Action = history.FaultBreakDiscovery
	RestoreDiscovery Action = "restore-discovery"

	// StartControllers starts kube-controller-manager of Step.Version as a client of Step.Server,
	// or of the load balancer over all servers if Step.Server is empty. Running ones are stopped
	// first. With Step.Elect, it starts one beside those that run, with leader election.
	StartControllers Action = "start-controllers"
	StopControllers  Action = "stop-controllers"
	CreateObjects    Action = "create-objects"   // create Step.Objects; workloads through Step.Server
	CreateQuota      Action = "create-quota"     // create a ResourceQuota that counts Step.Objects
	DeleteOwners     Action = "delete-owners"    // delete the owners among Step.Objects, as Step.Propagation says
	DeleteNamespace  Action = "delete-namespace" // delete the namespace of Step.Objects
	ReleaseObjects   Action = "release-objects"  // remove the finalizers of Step.Objects that are held
	// RewriteObjects reads, updates and patches the owners among Step.Objects through Step.Server.
	RewriteObjects Action = "rewrite-objects"
	// MigrateObjects asks through Step.Server for a migration of the storage version of each owner's
	// resource among Step.Objects, and waits until it has ended, for at most Step.For.
	MigrateObjects Action = "migrate-objects"
	// CollectObjects waits until controllers have deleted everything that they must delete, for at
	// most Step.For.
	CollectObjects Action = "collect-objects"

	// StartTests starts Step.Tests, which are some of Kubernetes' own end-to-end tests of
	// Step.Version. They are clients of Step.Server, or of the load balancer if Step.Server is
	// empty. The step does not wait for their end.
	StartTests Action = "start-tests"
	AwaitTests Action = "await-tests" // wait until these tests have ended, for at most Step.For
)

// Step is one action. The next step begins when it is complete.
type Step struct {
	Action  Action        `json:"action"`
	Server  string        `json:"server,omitempty"`
	Version string        `json:"version,omitempty"`
	For     time.Duration `json:"for,omitempty"`
	Fault   *fault.Fault  `json:"fault,omitempty"`
	// Label identifies the fault, so that Heal finds the fault of its Inject.
	Label      string      `json:"label,omitempty"`
	Definition *Definition `json:"definition,omitempty"`
	Path       string      `json:"path,omitempty"` // "/api" or "/apis"
	// Failure says how the fetches fail after BreakDiscovery; the zero value: with status 500.
	Failure fault.DiscoveryFailure `json:"failure,omitempty"`
	// Setup is the configuration with which Start, Restart or Replace start the server; nil: that
	// of the subject.
	Setup *Setup `json:"setup,omitempty"`
	// Objects are the objects that the step creates, changes or deletes; see [Objects].
	Objects     *Objects    `json:"objects,omitempty"`
	Propagation Propagation `json:"propagation,omitempty"`
	// Elect makes StartControllers start controllers with leader election, beside those that run.
	Elect bool `json:"elect,omitempty"`
	// Tests are the specs that StartTests runs.
	Tests *Tests `json:"tests,omitempty"`
	// Optional is true if the plan goes on although a step about controllers or their objects
	// fails, for example because no server that serves the objects can be reached.
	Optional bool `json:"optional,omitempty"`
}

// RefusedStep says that a step was not possible: the control plane does not accept a definition,
// there cannot be a crowd, or an optional step about controllers failed. The run has not failed,
// and nothing in the control plane is at fault.
type RefusedStep struct{ Err error }

// Error gives the reason.
func (e *RefusedStep) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *RefusedStep) Unwrap() error { return e.Err }

// Disturbs reports whether the step changes or harms the cluster. Changing objects is normal use of
// a cluster, and no disturbance; nor is a crowd, which others must not notice.
func (s Step) Disturbs() bool {
	return !slices.Contains([]Action{
		Soak, Outlast, Converge, Sweep, CreateObjects, CreateQuota, DeleteOwners, DeleteNamespace, ReleaseObjects, RewriteObjects, MigrateObjects,
		CollectObjects, StartTests, AwaitTests, StartCrowd, EndCrowd,
	}, s.Action)
}

// String returns the sentence for reports.
func (s Step) String() string {
	if setup := s.Setup.String(); setup != "" {
		s.Setup = nil
		return s.String() + ", " + setup
	}
	switch s.Action {
	case Soak:
		return fmt.Sprintf("let the load run for %s", s.For)
	case Outlast:
		return fmt.Sprintf("let the load run until %s after the last disturbance", s.For)
	case Converge:
		return fmt.Sprintf("let the load run until the servers agree and answer, or until %s after the last disturbance", s.For)
	case Sweep:
		return "ask every server for everything that discovery lists"
	case Replace:
		return fmt.Sprintf("replace %s by %s", s.Server, s.Version)
	case Start:
		if s.Version != "" {
			return fmt.Sprintf("start %s as %s", s.Server, s.Version)
		}
		return "start " + s.Server
	case Inject:
		return s.Fault.String()
	case Heal:
		return "heal: " + s.Label
	case Define:
		return "define " + s.Definition.String()
	case Undefine:
		return fmt.Sprintf("delete the definition of %s.%s", s.Definition.Resource, s.Definition.Group)
	case StartControllers:
		if s.Elect {
			return fmt.Sprintf("start more controllers %s with leader election, as clients of %s", s.Version, s.through())
		}
		return fmt.Sprintf("start the controllers %s as clients of %s", s.Version, s.through())
	case StopControllers:
		return "stop the controllers"
	case CreateObjects:
		if n := len(s.Objects.Workloads); n > 0 {
			return fmt.Sprintf("create namespace %s, and through %s workloads in it: %d", s.Objects.Name, s.Server, n)
		}
		if of := s.Objects.Of; of != nil {
			return fmt.Sprintf("create namespace %s, with an owner of %s.%s and %d dependents", s.Objects.Name, of.Resource, of.Group,
				s.Objects.Dependents)
		}
		return fmt.Sprintf("create namespace %s, with owners of several kinds and %d dependents of each", s.Objects.Name, s.Objects.Dependents)
	case CreateQuota:
		return fmt.Sprintf("create a ResourceQuota in %s that counts the owners' kinds", s.Objects.Name)
	case DeleteOwners:
		return fmt.Sprintf("delete the owners in %s, propagation %s", s.Objects.Name, s.Propagation)
	case DeleteNamespace:
		return fmt.Sprintf("delete namespace %s", s.Objects.Name)
	case ReleaseObjects:
		return fmt.Sprintf("remove the finalizers that hold the owners in %s", s.Objects.Name)
	case RewriteObjects:
		return fmt.Sprintf("read, update and patch the owners in %s through %s", s.Objects.Name, s.Server)
	case MigrateObjects:
		return fmt.Sprintf("migrate the storage versions of the owners in %s through %s, and wait for %s at most", s.Objects.Name, s.Server,
			s.For)
	case CollectObjects:
		return fmt.Sprintf("wait until the controllers have deleted what has to go, for %s at most", s.For)
	case StartTests:
		return fmt.Sprintf("start %d specs of Kubernetes' own tests %s as clients of %s", len(s.Tests.Specs), s.Version, s.through())
	case AwaitTests:
		return fmt.Sprintf("wait until the tests have ended, for %s at most", s.For)
	case CompactEtcd, DefragmentEtcd, DeleteLease, WithdrawDiscovery, GrantDiscovery:
		return s.administers()
	case StartCrowd:
		return fmt.Sprintf("from now on one caller keeps hundreds of watches open, through %s", s.Server)
	case EndCrowd:
		return fmt.Sprintf("end the crowd at %s", s.Server)
	case BreakDiscovery:
		return s.spoils()
	case RestoreDiscovery:
		return fmt.Sprintf("%s serves %s to its peers again", s.Server, s.Path)
	default:
		return fmt.Sprintf("%s %s", s.Action, s.Server)
	}
}

// through returns the name of the server, or of the load balancer, to which the clients of a step
// connect.
func (s Step) through() string { return cmp.Or(s.Server, "the load balancer") }

// spoils returns the sentence of a step that breaks a discovery document.
func (s Step) spoils() string {
	switch s.Failure {
	case fault.BreaksOff:
		return fmt.Sprintf("%s breaks off when it serves %s to its peers, before the first byte", s.Server, s.Path)
	case fault.CutShort:
		return fmt.Sprintf("%s breaks off when it serves %s to its peers, half way", s.Server, s.Path)
	default:
		return fmt.Sprintf("%s fails to serve %s to its peers", s.Server, s.Path)
	}
}

// Control says how a scenario must fail, as proof that it can. Subject or Defect is set.
type Control struct {
	// Subject is a subject for which the scenario must end in FAIL, such as "none".
	Subject string `json:"subject,omitempty"`
	// Defect is a planted defect (see sim/mutants) of the reference, in the simulator.
	Defect string `json:"defect,omitempty"`
	// Invariants must all be violated, independent of timing. At least one of them is core. Other
	// invariants may be violated too.
	Invariants []string `json:"invariants"`
}
