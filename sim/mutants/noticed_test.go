package mutants

import (
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/scenarios"
)

// noticed are sentences of the catalogue that the control of their scenario does not prove. The
// mutant makes such a sentence untrue, and the invariant of the scenario must fail.
var noticed = []struct{ scenario, mutant, invariant string }{
	{"watch-through-proxy", "watch-cut-short", "WatchesLast"},
	{"watch-through-proxy", "watch-without-events", "WatchesLast"},
	{"upgrade-requests", "watch-cut-short", "WatchesLast"},
	{"upgrade-requests", "upgrade-answered-plainly", "AnsweredAlike"},
	{"upgrade-requests", "groups-lost-on-upgrade", "IdentityPreserved"},
	{"etag-and-legacy-clients", "last-group-forgotten", "LegacyListsOwn"},
	{"rolling-upgrade", "every-other-refused", "ProxiedSucceed"},
	{"reset-mid-response", "broken-looks-complete", "AnsweredInFull"},
	{"peer-crash", "waits-for-what-is-gone", "UnavailableOnPeerFailure"},
	{"bandwidth-starved-list", "last-object-lost", "ListsAgree"},
	{"protobuf-and-patch-types", "object-altered", "ObjectsAgree"},
	{"flapping-link", "last-peer-given-up", "Available"},
	{"peer-crash-with-alternative", "same-peer-again", "Available"},
	{"crash-loop", "peers-success-becomes-error", "Available"},
	{"one-way-partition", "peers-success-becomes-error", "Available"},
	{"peer-partition", "peers-success-becomes-error", "Available"},
	{"wrong-peer-ca", "peers-success-becomes-error", "Available"},
	{"front-proxy-name-not-allowed", "peers-success-becomes-error", "Available"},
	{"front-proxy-stranger", "peers-success-becomes-error", "Available"},
	{"front-proxy-expired", "peers-success-becomes-error", "Available"},
	{"missing-peer-ca-file", "peers-success-becomes-error", "Available"},
	{"certificate-rotation", "peers-success-becomes-error", "Available"},
	{"etcd-cut-off-one-server", "peers-success-becomes-error", "Available"},
	{"advertised-address-wrong", "own-address-whatever-was-given", "ConfigurationTakesEffect"},
	{"advertised-address-fallback", "falls-back-to-a-neighbour", "ConfigurationTakesEffect"},
	{"gate-rollout", "on-though-switched-off", "ConfigurationTakesEffect"},
	{"kubeadm-defaults", "off-though-switched-on", "ConfigurationTakesEffect"},
	{"emulated-upgrade", "emulates-nothing", "ConfigurationTakesEffect"},
}

// TestScenariosNotice plants each of these mutants. That the invariant holds without it is in the
// simulated corpus (internal/lab), because the scenario is about the invariant.
func TestScenariosNotice(t *testing.T) {
	findings.all++
	for _, n := range noticed {
		t.Run(n.scenario+"/"+n.mutant, func(t *testing.T) {
			s, err := scenarios.Find(n.scenario)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(s.About, n.invariant) {
				t.Errorf("it is not about %s", n.invariant)
			}
			known := slices.Concat(catalogue(), byScenario, flags)
			i := slices.IndexFunc(known, func(m mutant) bool { return m.name == n.mutant })
			if i < 0 {
				t.Fatal("there is no defect of that name")
			}
			t.Parallel()
			with := outcomes(t, s, known[i])
			if outcome := with[n.invariant]; outcome != invariant.OutcomeFail {
				t.Errorf("with the defect %s is %s", n.invariant, outcome)
			}
			for name, outcome := range with { // the order does not matter
				if outcome == invariant.OutcomeFail {
					findings.by(name)
				}
			}
		})
	}
}
