package scenarios

// Control is a subject on which a scenario must fail: the proof that it can. One of Subject and Defect is set.
type Control struct {
	// Subject is a subject on which the scenario must end in FAIL, such as "none".
	Subject string `json:"subject,omitempty"`
	// Defect is a planted defect (see sim/mutants) with which the reference must fail it in the simulator.
	Defect string `json:"defect,omitempty"`
	// Invariants are those that must be violated, every one of them and whatever the timing: at least one, and at least one that the KEP demands.
	// What is violated beside them is no matter of the control.
	Invariants []string `json:"invariants"`
}

// What a control plane of two versions violates without any proxy. Named is only what has many chances to be seen: a control that fails by bad luck
// would make a whole conformance run inconclusive.
var (
	// mixedToTheEnd is for plans after whose last disturbance versions are still mixed, for longer than Bounds.Convergence.
	mixedToTheEnd = Control{
		Subject:    SubjectNone,
		Invariants: []string{"NoFalseNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "DiscoveryAccessible", "Converges"},
	}
	// mixedForAWhile is for plans that let versions be mixed undisturbed, for some seconds at a time, and end with one.
	mixedForAWhile = Control{Subject: SubjectNone, Invariants: []string{"NoFalseNotFound", "DiscoveryComplete", "DiscoveryAccessible"}}
	// outOfReach is for plans of mixedToTheEnd that in the middle keep a server, for long enough, from all that could serve what it does not.
	outOfReach = Control{
		Subject: SubjectNone,
		Invariants: []string{
			"NoFalseNotFound", "UnavailableOnPeerFailure", "DiscoveryDeterministic", "DiscoveryComplete", "DiscoveryAccessible", "Converges",
		},
	}
	// askedInVain is for plans with no time that is certainly quiet, or that the simulator cannot show to have one.
	askedInVain = Control{Subject: SubjectNone, Invariants: []string{"NoFalseNotFound"}}
)
