package scenarios

import "slices"

// Family groups the catalogue the way a reader looks for things in it.
type Family string

// The families.
const (
	Upgrades      Family = "upgrades"
	Network       Family = "network"
	Processes     Family = "processes"
	Configuration Family = "configuration"
	Discovery     Family = "discovery"
	Safety        Family = "safety"
	Requests      Family = "traffic"
	Scale         Family = "scale"
)

// The backends, by the names that --backend takes.
const (
	BackendLocal    = "local"
	BackendSim      = "sim"
	BackendKind     = "kind"
	BackendExisting = "existing"
)

// Limits say where a scenario does not run, and why. The zero value: it runs everywhere.
type Limits struct {
	// Backends on which it can run; nil means all that carry out its actions.
	Backends []string `json:"backends,omitempty"`
	// Reason is why, as the end of a sentence: "…, because it needs a hundred servers". Needed with Backends.
	Reason string `json:"reason,omitempty"`
}

// Allows reports whether the scenario runs on the backend.
func (l Limits) Allows(backend string) bool {
	return len(l.Backends) == 0 || slices.Contains(l.Backends, backend)
}

// Control is a subject on which a scenario must fail: the proof that it can. One of Subject and Defect is set.
type Control struct {
	// Subject is a subject on which the scenario must end in FAIL, such as "none".
	Subject string `json:"subject,omitempty"`
	// Defect is a planted defect (see sim/mutants) with which the reference must fail it in the simulator.
	Defect string `json:"defect,omitempty"`
	// Invariant is the one that must be violated.
	Invariant string `json:"invariant"`
}
