package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var certificateRotation = scenario.Scenario{
	Name:    "certificate-rotation",
	Happens: "The first server alone runs TO. One after the other the servers are restarted with new serving and front-proxy certificates of the same authorities.",
	Holds: "Nothing breaks: old and new certificates are as good as each other, and every server goes on passing requests to every other, " +
		"which believe no front-proxy certificate that it has but the new one. Beyond the KEP: none of these requests fails.",
	Source: "KEP-4020, proxy transport between apiservers and authn: peers trust authorities (--peer-ca-file, --requestheader-client-ca-file), not certificates",
	About: []string{"NoFalseNotFound", "TrueNotFound", "IdentityPreserved", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete",
		"NoCrash", "Converges", "Available"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Labels:           []string{"conformance"},
	Limits:           notOnNodes,
	Control:          mixedToTheEnd,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Settle(4 * time.Second)
		// That a server shows its new serving certificate is looked at when it has started. Of the front-proxy certificate that is not possible: no log of
		// a kube-apiserver tells which one a peer showed. But it is given no other that its peers would believe, so that whoever passes requests on shows it.
		for _, s := range plan.Servers {
			plan.SetUp(s.Name, scenario.Setup{Serving: scenario.CertificateRotated, FrontProxy: scenario.CertificateRotated})
			plan.Settle(4 * time.Second)
		}
		plan.Converge()
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300, Unserved: 100}
		return *plan
	},
}
