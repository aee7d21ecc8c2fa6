package mutants

import (
	"net/http"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
)

// hops are mutants of how a server distinguishes a peer's request from a client's.
var hops = []mutant{
	{
		part: "hop", name: "header-not-sent", rare: true,
		wrong: "A request is passed on without the header that says so.",
		plant: func(acted func()) sim.Defects {
			return sending(func(r *http.Request) {
				acted()
				r.Header.Del(proxy.HopHeader)
			})
		},
	},
	{
		part: "hop", name: "passed-back", rare: true,
		wrong:   "A request is passed on without the header that says so, and custom resources are taken from peers like everything else.",
		changes: []string{"Knowledge.Extensions=ignored", "Fetching.AfterChange=0s"},
		plant: func(acted func()) sim.Defects {
			return sending(func(r *http.Request) {
				acted()
				r.Header.Del(proxy.HopHeader)
			})
		},
	},
	{
		part: "hop", name: "client-believed",
		wrong:   "A client's header is believed to be a peer's.",
		changes: []string{"Quirks.TrustAnyHop=true"},
	},
	{
		part: "hop", name: "absence-at-hop", rare: true,
		wrong:   "What a peer has sent on, and is not served here, is answered 404 rather than refused.",
		changes: []string{"Routing.RefuseAtHop=false"},
	},
}
