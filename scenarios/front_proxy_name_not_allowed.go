package scenarios

import (
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var frontProxyNameNotAllowed = scenario.Scenario{
	Name:    "front-proxy-name-not-allowed",
	Happens: "The first server alone runs TO. The second is restarted with a front-proxy certificate of a name that no other server allows; then it is put right.",
	Holds: "Meanwhile its peers refuse the second server, which answers 503, and never 404, for what only the first serves; " +
		"all is well once it is put right. Beyond the KEP: the others notice nothing.",
	Source:           "KEP-4020, proxy transport between apiservers and authn: peers prove who they are by the front-proxy certificate (--requestheader-allowed-names); goals: 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "OnlyTrustedPeers", "IdentityPreserved", "NoLoop", "NoCrash", "Converges", "Available"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Labels:           []string{"conformance"},
	Limits:           notOnNodes,
	Control:          outOfReach,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Misconfigure("b", scenario.Setup{FrontProxy: scenario.CertificateOther})
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300, Unreachable: 50}
		return *plan
	},
}
