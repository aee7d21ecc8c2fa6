package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/spoil"
)

var discoveryBrokenOff = Scenario{
	Name: "discovery-broken-off",
	Happens: "The first server alone runs TO. When peers fetch what it serves, its answers (200) break off: first before the first byte of either document, " +
		"later half way. Each time another server is restarted, so that everybody asks.",
	Holds: "Nothing is not an empty list, and half a list not a short one: what the others knew of the first server they do not forget, what they could not " +
		"learn they do not take for absent, and once answers are whole again they learn it.",
	Source: "KEP-4020, goals; k8s.io/apiserver, pkg/util/peerproxy: whatever has come of a body when reading it fails is decoded, and an empty one decodes to a " +
		"document without groups",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "NoCrash", "Converges"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           Network,
	Labels:           []string{"conformance"},
	Limits:           truncatedDiscovery.Limits,
	Control:          Control{Defect: "nothing-is-an-empty-list", Invariants: []string{"NoFalseNotFound"}},
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		plan.settle(2 * time.Second)
		for _, manner := range []spoil.Manner{spoil.BreaksOff, spoil.CutShort} {
			for _, path := range []string{"/api", "/apis"} {
				plan.add(Step{Action: Spoil, Server: "a", Path: path, Manner: manner})
			}
			plan.restart("c")
			plan.settle(10 * time.Second)
			for _, path := range []string{"/api", "/apis"} {
				plan.add(Step{Action: Mend, Server: "a", Path: path})
			}
			plan.settle(10 * time.Second)
		}
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 4000, Skewed: 500, Unserved: 100}
		return *plan
	},
}
