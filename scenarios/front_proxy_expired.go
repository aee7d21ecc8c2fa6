package scenarios

import (
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var frontProxyExpired = scenario.Scenario{
	Name:    "front-proxy-expired",
	Happens: "The first server alone runs TO. The second is restarted with a front-proxy certificate that has expired; then it is put right.",
	Holds: "If it starts at all, its peers do not believe the second server, which answers 503, and never 404, for what only the first serves; " +
		"all is well once it is put right. Beyond the KEP: the others notice nothing.",
	Source:           "KEP-4020, proxy transport between apiservers and authn: peers prove who they are by the front-proxy certificate (--proxy-client-cert-file); goals: 503, not 404",
	About:            []string{"NoFalseNotFound", "OnlyTrustedPeers", "IdentityPreserved", "NoLoop", "NoCrash", "Converges", "Available"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Limits:           notOnNodes,
	Control:          mixedToTheEnd,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Misconfigure("b", scenario.Setup{FrontProxy: scenario.CertificateExpired})
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300}
		return *plan
	},
}
