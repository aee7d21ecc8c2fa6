package scenario

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
