package proxy_test

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/skewproof/skewproof/proxy"
)

var histories = flag.Int("histories", 60, "how many random histories to compare with upstream's")

// TestBehavesLikeUpstream drives the real upstream proxy, and this package under the preset of
// upstream's version with the sources of package peers. Both get the same random history in virtual
// time. In a history:
//   - leases appear, disappear and get other holders, and some addresses are unknown;
//   - peers are cut off or slow, fail to give one of their documents, or answer with errors, halves
//     and redirects; fetches are retried up to the last retry;
//   - custom resources and aggregated APIs appear and disappear, with their graces;
//   - a local server lists them, and restarts.
//
// After every step, the test asks both for every resource, and sends unusual requests (see odd and
// oddDiscovery). Clients must get the same status, headers and body. Servers must get the same
// requests. Peers must get the same fetches of discovery. The exceptions are in differences.
//
// The test does not compare upgrades and informational answers, because they need connections. It
// does not compare the behaviour that policies.md describes for upstream alone either.
func TestBehavesLikeUpstream(t *testing.T) {
	for seed := range *histories {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if different := compareHistory(t, uint64(seed), proxy.Upstream137(), differences); different != "" {
				t.Error(different)
			}
		})
	}
}

// compareHistory returns the first difference in the history of a seed, or "".
func compareHistory(t *testing.T, seed uint64, policy proxy.Policy, allowed []listed) (different string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { different = newPast(t, seed, policy, allowed).live() })
	return different
}
