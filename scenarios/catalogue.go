package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/skewproof/skewproof/internal/scenario"
)

// catalogue in the order in which a reviewer would read it: a family after the other.
var catalogue = slices.Concat(upgrades, network, processes, configuration, discovery, safety, requests, scale)

var (
	upgrades = []scenario.Scenario{quiet, rollingUpgrade, canaryUpgrade, rollback, upgradeDowngradeUpgrade, emulatedUpgrade, rollingUpgradeUnderFaults, restartStorm,
		gateRollout}
	network = []scenario.Scenario{peerPartition, oneWayPartition, restartDuringPartition, startupDuringPartition, slowPeer, blackHole, flappingLink,
		resetMidResponse, truncatedDiscovery, discoveryBrokenOff, bandwidthStarvedList}
	processes     = []scenario.Scenario{peerCrash, peerCrashWithAlternative, peerPause, crashLoop, lastPeerLeaves, etcdSlow, etcdCutOffOneServer}
	configuration = []scenario.Scenario{
		wrongPeerCA, expiredServingCertificate, untrustedServingCertificate, servingCertificateForAnotherName, certificateRotation,
		frontProxyNameNotAllowed, frontProxyStranger, frontProxyExpired, advertisedAddressWrong, advertisedAddressHalf, advertisedAddressFallback, advertisedAddressUnroutable, missingPeerCAFile, twoServersOneHostname, kubeadmDefaults,
	}
	discovery = []scenario.Scenario{
		mergedDiscoveryDeterministic, discoveryConvergence, nopeerProfile, preferredVersions, crdLifecycle, crdGracePeriod, crdVersionGracePeriod, crdWithoutPeers,
		aggregatedAPILifecycle, aggregatedAPIGracePeriod, etagAndLegacyClients, openAPI,
	}
	safety   = []scenario.Scenario{loopByMutualStaleBelief, hostileHeaders, identityPreserved, writesOnce, trueNotFound}
	requests = []scenario.Scenario{watchThroughProxy, subresources, upgradeRequests, protobufAndPatchTypes, largeList}
	scale    = []scenario.Scenario{manyPeers, manyResources, longCampaign}
)

// All returns the catalogue.
func All() []scenario.Scenario { return append([]scenario.Scenario(nil), catalogue...) }

// Find returns the scenario of that name, or an [UnknownError] that names the nearest one.
func Find(name string) (scenario.Scenario, error) {
	for _, s := range catalogue {
		if s.Name == name {
			return s, nil
		}
	}
	return scenario.Scenario{}, &UnknownError{Name: name, Nearest: nearest(name)}
}

// UnknownError says that there is no such scenario.
type UnknownError struct {
	Name    string
	Nearest string // "" if nothing is near
}

// Error suggests what may have been meant.
func (e *UnknownError) Error() string {
	if e.Nearest != "" {
		return fmt.Sprintf("no scenario %q: did you mean %q? 'skewproof list' shows all", e.Name, e.Nearest)
	}
	return fmt.Sprintf("no scenario %q: 'skewproof list' shows all", e.Name)
}

func nearest(name string) string {
	best, similarity := "", 0.5 // half of the letters must agree
	for _, s := range catalogue {
		if got := levenshtein.Similarity(strings.ToLower(name), s.Name, nil); got > similarity {
			best, similarity = s.Name, got
		}
	}
	return best
}
