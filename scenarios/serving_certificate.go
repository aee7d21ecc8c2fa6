package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var expiredServingCertificate = scenario.Scenario{
	Name:    "expired-serving-certificate",
	Happens: "Only the first server runs TO. It is restarted with an expired serving certificate, and then with a valid one.",
	Holds: "If it starts at all, the others answer 503, never 404, for what only it serves while they cannot trust it. No server " +
		"crashes. With the valid certificate everything is right again.",
	Source:           "KEP-4020, proxy transport between apiservers and authn: peers verify each other's serving certificates; goals: 503, not 404",
	About:            []string{"NoFalseNotFound", "OnlyTrustedPeers", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Limits:           notOnNodes,
	Control:          mixedToTheEnd,
	Plan:             misconfigured("a", scenario.Setup{Serving: scenario.CertificateExpired}, 0),
}

var untrustedServingCertificate = scenario.Scenario{
	Name: "untrusted-serving-certificate",
	Happens: "Only the first server runs TO. It is restarted with a serving certificate of an authority that no server trusts, and then " +
		"with a valid one.",
	Holds: "While the others cannot trust it, they answer 503, never 404, for what only it serves. With the valid certificate everything " +
		"is right again.",
	Source: "KEP-4020, proxy transport between apiservers and authn: --peer-ca-file verifies peers' serving certificates; goals: 503, not " +
		"404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "OnlyTrustedPeers", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Limits:           notOnNodes,
	Control:          outOfReach,
	Plan:             misconfigured("a", scenario.Setup{Serving: scenario.CertificateStranger}, 50),
}

var servingCertificateForAnotherName = scenario.Scenario{
	Name: "serving-certificate-for-another-name",
	Happens: "Only the first server runs TO. It is restarted with a serving certificate of the right authority for another name, and then " +
		"with a valid one.",
	Holds: "If it starts at all, the others answer 503, never 404, for what only it serves while they cannot trust it. No server " +
		"crashes. With the valid certificate everything is right again.",
	Source: "KEP-4020, proxy transport between apiservers and authn: serving certificates are verified; k8s.io/kubernetes, " +
		"pkg/controlplane/apiserver/peer.go: peers are dialled as kubernetes.default.svc; KEP-4020, goals: 503, not 404",
	About:            []string{"NoFalseNotFound", "OnlyTrustedPeers", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Limits:           notOnNodes,
	Control:          mixedToTheEnd,
	Plan:             misconfigured("a", scenario.Setup{Serving: scenario.CertificateOther}, 0),
}

var certificateRotation = scenario.Scenario{
	Name: "certificate-rotation",
	Happens: "Only the first server runs TO. One after the other, the servers are restarted with new serving and front-proxy certificates " +
		"of the same authorities.",
	Holds: "Nothing breaks: servers accept old and new certificates, and go on passing requests on to each other. Beyond the KEP: none " +
		"of these requests fails.",
	Source: "KEP-4020, proxy transport between apiservers and authn: peers trust authorities (--peer-ca-file, " +
		"--requestheader-client-ca-file), not certificates",
	About: []string{"NoFalseNotFound", "TrueNotFound", "IdentityPreserved", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete",
		"NoCrash", "Converges", "Available"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Labels:           []string{"conformance"},
	Limits:           notOnNodes,
	Control:          mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 5000, Skewed: 300, Unserved: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		// The run checks that a started server presents its new serving certificate. It cannot
		// check the front-proxy certificate, which no log of a kube-apiserver shows, but a server
		// has no other one that its peers would accept.
		for _, s := range plan.Servers {
			plan.SetUp(s.Name, scenario.Setup{Serving: scenario.CertificateRotated, FrontProxy: scenario.CertificateRotated})
			plan.Settle(4 * time.Second)
		}
		plan.Converge()
	}),
}
