package scenario

import (
	"slices"
	"strings"
)

// Family is a group of scenarios in the catalogue, by the subject for which a reader looks.
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
	Controllers   Family = "controllers"
	Scale         Family = "scale"
)

// Labels returns the name of the family, and its singular if the name is a plural.
func (f Family) Labels() []string {
	switch f {
	case Upgrades:
		return []string{string(f), "upgrade"}
	case Processes:
		return []string{string(f), "process"}
	default:
		return []string{string(f)}
	}
}

// The backends, by the values of --backend.
const (
	BackendLocal    = "local"
	BackendSim      = "sim"
	BackendKind     = "kind"
	BackendExisting = "existing"
)

// Limits say where a scenario does not run, and why. The zero value: it runs everywhere.
type Limits struct {
	// Backends are the backends on which it can run; nil means all that support its actions.
	Backends []string `json:"backends,omitempty"`
	// Subjects are the subjects for which it is meaningful; nil means all.
	Subjects []string `json:"subjects,omitempty"`
	// Reason is the reason, as the end of a sentence: "because it needs a hundred servers".
	Reason string `json:"reason,omitempty"`
}

// OnBackends says the limit with its reason: "runs on sim only, because …".
func (l Limits) OnBackends() string {
	return "runs on " + strings.Join(l.Backends, ", ") + " only, " + l.Reason
}

// ForSubjects says the limit with its reason: "is for reference only, because …".
func (l Limits) ForSubjects() string {
	return "is for " + strings.Join(l.Subjects, ", ") + " only, " + l.Reason
}

// Allows reports whether the scenario runs on the backend.
func (l Limits) Allows(backend string) bool {
	return len(l.Backends) == 0 || slices.Contains(l.Backends, backend)
}

// AllowsSubject reports whether the scenario is meaningful for the subject.
func (l Limits) AllowsSubject(subject string) bool {
	return len(l.Subjects) == 0 || slices.Contains(l.Subjects, subject)
}

// The subjects of runs on real servers. The subject says whose Mixed Version Proxy is tested.
const (
	SubjectNone      = "none"      // no proxy: that of the kube-apiserver is switched off
	SubjectBuiltin   = "builtin"   // the kube-apiserver's own
	SubjectReference = "reference" // this project's, inside a kube-apiserver in place of its own
)

// Subjects lists all subjects.
var Subjects = []string{SubjectBuiltin, SubjectReference, SubjectNone}

// Gate is the feature gate of the kube-apiserver's own Mixed Version Proxy.
const Gate = "UnknownVersionInteroperabilityProxy"
