package scenario

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
	Controllers   Family = "controllers"
	Scale         Family = "scale"
)

// Labels are the name of the family, and its singular if the name is in the plural.
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
	// Subjects for which it means something; nil means all.
	Subjects []string `json:"subjects,omitempty"`
	// Reason is why, as the end of a sentence: "because it needs a hundred servers".
	Reason string `json:"reason,omitempty"`
}

// Allows reports whether the scenario runs on the backend.
func (l Limits) Allows(backend string) bool {
	return len(l.Backends) == 0 || slices.Contains(l.Backends, backend)
}

// AllowsSubject reports whether the scenario means something for the subject.
func (l Limits) AllowsSubject(subject string) bool {
	return len(l.Subjects) == 0 || slices.Contains(l.Subjects, subject)
}

// The subjects of runs on real servers: whose Mixed Version Proxy is tested.
const (
	SubjectNone      = "none"      // nobody's: that of the kube-apiserver is switched off
	SubjectBuiltin   = "builtin"   // the kube-apiserver's own
	SubjectReference = "reference" // this project's, as a sidecar in front of each kube-apiserver, whose own is switched off
)

// Subjects lists them.
var Subjects = []string{SubjectBuiltin, SubjectReference, SubjectNone}

// Gate is the feature gate of the kube-apiserver's own Mixed Version Proxy.
const Gate = "UnknownVersionInteroperabilityProxy"
