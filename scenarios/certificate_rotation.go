package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var certificateRotation = scenario.Scenario{
	Name: "certificate-rotation",
	Happens: "Only the first server runs TO. One after the other, the servers are restarted with new serving and front-proxy certificates " +
		"of the same authorities.",
	Holds: "Nothing breaks: servers accept old and new certificates, and continue to pass requests on to each other. Beyond the KEP: none " +
		"of these requests fails.",
	Source: "KEP-4020, proxy transport between apiservers and authn: peers trust authorities (--peer-ca-file, " +
		"--requestheader-client-ca-file), not certificates",
	About: []string{"NoFalseNotFound", "TrueNotFound", "IdentityPreserved", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete",
		"NoCrash", "Converges", "Available"},
	Labels:  []string{"conformance"},
	Limits:  notOnNodes,
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 5000, Skewed: 300, Unserved: 100, PassedOn: 350, MergedDocuments: 90},
		func(plan *scenario.Plan, _ scenario.Parameters) {
			plan.Settle(4 * time.Second)
			// The run checks that a started server presents its new serving certificate. It cannot
			// check the front-proxy certificate, because no log of a kube-apiserver shows it. But the
			// peers accept no other certificate from this server.
			for _, s := range plan.Servers {
				plan.SetUp(s.Name, scenario.Setup{Serving: scenario.CertificateRotated, FrontProxy: scenario.CertificateRotated})
				plan.Settle(4 * time.Second)
			}
			plan.Converge()
		}),
}
