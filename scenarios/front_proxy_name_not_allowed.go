package scenarios

import "github.com/skewproof/skewproof/internal/history"

var frontProxyNameNotAllowed = Scenario{
	Name:    "front-proxy-name-not-allowed",
	Happens: "The first server alone runs TO. The second is restarted with a front-proxy certificate of a name that no other server allows; then it is put right.",
	Holds: "Meanwhile its peers refuse the second server, which answers 503, and never 404, for what only the first serves; " +
		"all is well once it is put right. Beyond the KEP: the others notice nothing.",
	Source:           "KEP-4020, proxy transport between apiservers and authn: peers prove who they are by the front-proxy certificate (--requestheader-allowed-names); goals: 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "OnlyTrustedPeers", "IdentityPreserved", "NoLoop", "NoCrash", "Converges", "Available"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           Configuration,
	Labels:           []string{"conformance"},
	Limits:           notOnNodes,
	Control:          outOfReach,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		plan.misconfigure("b", Setup{FrontProxy: CertificateOther})
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300, Unreachable: 50}
		return *plan
	},
}
