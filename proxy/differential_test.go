package proxy_test

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/skewproof/skewproof/proxy"
)

var histories = flag.Int("histories", 60, "how many random histories to compare with upstream's")

// TestBehavesLikeUpstream drives the real upstream proxy and this package under the preset of its
// version, with the sources of package peers, through the same random history in virtual time:
// leases that come, go and change hands, addresses that are not known, peers that are cut off,
// slow, fail to give one of their documents or answer with errors, halves and redirects, retries up
// to the last, custom resources and aggregated APIs that come and go with their graces, and a local
// server that lists them and restarts.
//
// After every step both are asked for every resource and for odd things in odd ways (see odd and
// oddDiscovery). Clients must get the same status, headers and body, servers the same requests, and
// peers the same questions about what they serve; but for what is listed in differences.
//
// Not compared are upgrades and informational answers, for which there would have to be
// connections, and what policies.md says of upstream alone.
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
