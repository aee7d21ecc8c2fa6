package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// catalogue lists the scenarios in the order in which a reviewer reads them, family by family.
var catalogue = slices.Concat(
	family(scenario.Upgrades, quiet, rollingUpgrade, canaryUpgrade, rollback, upgradeDowngradeUpgrade, emulatedUpgrade,
		rollingUpgradeUnderFaults, restartStorm, gateRollout, referenceRollout),
	family(scenario.Network, peerPartition, oneWayPartition, restartDuringPartition, startupDuringPartition, slowPeer, blackHole,
		flappingLink, resetMidResponse, truncatedDiscovery, discoveryBrokenOff, bandwidthStarvedList),
	family(scenario.Processes, peerCrash, peerCrashWithAlternative, peerPause, crashLoop, drain, lastPeerLeaves, etcdSlow, etcdCutOffOneServer),
	family(scenario.Configuration, wrongPeerCA, expiredServingCertificate, untrustedServingCertificate, servingCertificateForAnotherName,
		certificateRotation, frontProxyNameNotAllowed, frontProxyStranger, frontProxyExpired, advertisedAddressWrong, advertisedAddressHalf,
		advertisedAddressFallback, advertisedAddressUnroutable, missingPeerCAFile, hardenedDiscovery, twoServersOneHostname, kubeadmDefaults),
	family(scenario.Discovery, mergedDiscoveryDeterministic, discoveryConvergence, nopeerProfile, preferredVersions, crdLifecycle,
		crdGracePeriod, crdVersionGracePeriod, crdWithoutPeers, aggregatedAPILifecycle, aggregatedAPIGracePeriod, etagAndLegacyClients,
		openAPI),
	family(scenario.Safety, loopByMutualStaleBelief, hostileHeaders, identityPreserved, writesOnce, trueNotFound),
	family(scenario.Requests, watchThroughProxy, subresources, nodeIdentity, upgradeRequests, protobufAndPatchTypes, largeList, crowds),
	family(scenario.Controllers, garbageCollection, foregroundDeletion, namespaceDeletion, namespaceDeletionDuringPartition,
		namespaceDeletionWhileDraining, controllersBehindBalancer, controllersRollingUpgrade, controllersRollback, controllersCanary, controllersWrongPeerCA,
		controllerDiscovery, quota, controllersCRDLifecycle, leaderElection, informers, storageVersion, storageVersionMigration,
		fieldSkew, garbageCollectionDuringPartition, foregroundDeletionDuringPartition, quotaDuringPartition, informersDuringPartition,
		storageVersionDuringPartition),
	family(scenario.Scale, manyPeers, manyResources, longCampaign),
)

// family sets what follows from the place of scenarios in the catalogue and from their plans. A
// scenario that gives no number of servers needs two.
func family(f scenario.Family, members ...scenario.Scenario) []scenario.Scenario {
	for i := range members {
		s := &members[i]
		s.Family, s.MinServers = f, max(2, s.MinServers)
		plan := s.Plan(scenario.Parameters{Servers: s.MinServers, From: "v1.37.1", To: "v1.37.1", Bounds: history.DefaultBounds})
		s.NeedsTwoVersions = skewed(plan.Pressure)
	}
	return members
}

// skewed reports whether a plan demands requests that only servers of another version can serve.
// Owners and events are of kinds that only some servers serve; see package ownership.
func skewed(least pressure) bool {
	return least.Skewed+least.Unreachable+least.PassedOn+least.Writes+least.Subresources+least.Watches+least.Upgrades+least.Lists+
		least.Formats+least.Events+least.Owners > 0
}

// These are the controls: the invariants that a control plane of two versions violates without a
// proxy. A control names only invariants that the plan gives many chances to fail. If the control
// of a scenario passes by chance, the whole conformance run is inconclusive.
var (
	// mixedToTheEnd is for plans whose versions stay mixed to the end, for longer than
	// Bounds.Convergence.
	mixedToTheEnd = scenario.Control{
		Subject:    scenario.SubjectNone,
		Invariants: []string{"NoFalseNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "DiscoveryAccessible", "Converges"},
	}
	// mixedForAWhile is for plans in which versions are mixed for some seconds at a time, without a
	// disturbance, and that end with one version.
	mixedForAWhile = scenario.Control{
		Subject:    scenario.SubjectNone,
		Invariants: []string{"NoFalseNotFound", "DiscoveryComplete", "DiscoveryAccessible"},
	}
	// outOfReach is for plans of mixedToTheEnd in which a server cannot reach its capable peers for
	// long enough. A capable peer serves a resource that the server itself does not serve.
	outOfReach = scenario.Control{
		Subject: scenario.SubjectNone,
		Invariants: []string{
			"NoFalseNotFound", "UnavailableOnPeerFailure", "DiscoveryDeterministic", "DiscoveryComplete", "DiscoveryAccessible", "Converges",
		},
	}
	// withoutSteadyState is for plans that may have no steady state, at least in the simulator.
	withoutSteadyState = scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"NoFalseNotFound"}}
)

// notOnNodes is for scenarios in which a server has its own certificates, authorities or addresses.
// A test compares it with the abilities of the kind backend.
var notOnNodes = scenario.Limits{
	Backends: []string{scenario.BackendLocal, scenario.BackendSim},
	Reason: "because the kubelet, the etcd member and the load balancer of a kind cluster also depend on the certificates, authorities and " +
		"addresses of its nodes",
}

var onlySimulated = []string{scenario.BackendSim}

// All returns the catalogue.
func All() []scenario.Scenario { return append([]scenario.Scenario(nil), catalogue...) }

// Find returns the scenario with that name, or an [UnknownError].
func Find(name string) (scenario.Scenario, error) {
	for _, s := range catalogue {
		if s.Name == name {
			return s, nil
		}
	}
	return scenario.Scenario{}, &UnknownError{Name: name, Nearest: nearest(name)}
}

// UnknownError says that no scenario has that name.
type UnknownError struct {
	Name    string
	Nearest string // the most similar name; "" if none is similar
}

// Error suggests the most similar name.
func (e *UnknownError) Error() string {
	if e.Nearest != "" {
		return fmt.Sprintf("no scenario %q: did you mean %q? 'skewproof list' shows all", e.Name, e.Nearest)
	}
	return fmt.Sprintf("no scenario %q: 'skewproof list' shows all", e.Name)
}

func nearest(name string) string {
	best, similarity := "", 0.5 // at least half of the letters must agree
	for _, s := range catalogue {
		if got := levenshtein.Similarity(strings.ToLower(name), s.Name, nil); got > similarity {
			best, similarity = s.Name, got
		}
	}
	return best
}
