package scenarios

import "github.com/skewproof/skewproof/internal/scenario"

var missingPeerCAFile = scenario.Scenario{
	Name:    "missing-peer-ca-file",
	Happens: "Only the first server runs TO. The second is restarted with the feature on but without --peer-ca-file, and then with it.",
	Holds: "The second server refuses to start, or it does what the feature promises: it does not silently answer 404 for " +
		"resources that only the first serves. With the file everything is right again. Beyond the KEP: the other servers " +
		"are not affected.",
	Source: "KEP-4020, proxy transport between apiservers and authn, 1.i: without --peer-ca-file requests fail with 503; goals: 503, not " +
		"404. Risks and mitigations 6 has discovery fall back to the local one",
	About:      []string{"NoFalseNotFound", "NoLoop", "NoCrash", "Converges", "Available", "ConfigurationTakesEffect"},
	MinServers: 3,
	Limits:     notOnNodes,
	Control:    mixedToTheEnd,
	Plan:       misconfigured("b", scenario.Setup{PeerCA: scenario.TrustMissing}, 0),
}
