package scenarios

import "github.com/skewproof/skewproof/internal/scenario"

// What a control plane of two versions violates without any proxy. Named is only what has many chances to be seen: a control that fails by bad luck
// would make a whole conformance run inconclusive.
var (
	// mixedToTheEnd is for plans after whose last disturbance versions are still mixed, for longer than Bounds.Convergence.
	mixedToTheEnd = scenario.Control{
		Subject:    scenario.SubjectNone,
		Invariants: []string{"NoFalseNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "DiscoveryAccessible", "Converges"},
	}
	// mixedForAWhile is for plans that let versions be mixed undisturbed, for some seconds at a time, and end with one.
	mixedForAWhile = scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"NoFalseNotFound", "DiscoveryComplete", "DiscoveryAccessible"}}
	// outOfReach is for plans of mixedToTheEnd that in the middle keep a server, for long enough, from all that could serve what it does not.
	outOfReach = scenario.Control{
		Subject: scenario.SubjectNone,
		Invariants: []string{
			"NoFalseNotFound", "UnavailableOnPeerFailure", "DiscoveryDeterministic", "DiscoveryComplete", "DiscoveryAccessible", "Converges",
		},
	}
	// askedInVain is for plans with no time that is certainly quiet, or that the simulator cannot show to have one.
	askedInVain = scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"NoFalseNotFound"}}
)
