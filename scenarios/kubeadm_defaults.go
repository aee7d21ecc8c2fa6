package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var kubeadmDefaults = scenario.Scenario{
	Name:    "kubeadm-defaults",
	Happens: "The first server runs TO, the others FROM, with exactly the flags that kubeadm gives them. There is no fault.",
	Holds:   "A feature that is on by default does what it promises by default.",
	Source: "k8s.io/apiserver, pkg/features/kube_features.go: UnknownVersionInteroperabilityProxy is beta and on by default from v1.36; " +
		"KEP-4020, goals. Risks and mitigations 6 has a server without peers' certificates fall back to its own discovery",
	About: []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "NoCrash", "Converges",
		"ConfigurationTakesEffect"},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 2000, Skewed: 200, Unserved: 50, MergedDocuments: 45},
		func(plan *scenario.Plan, _ scenario.Parameters) {
			for i := range plan.Servers {
				plan.Servers[i].Setup = &scenario.Setup{Flags: scenario.FlagsKubeadm}
			}
			plan.Settle(10 * time.Second)
			plan.Converge()
		}),
}
