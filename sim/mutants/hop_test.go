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
		wrong: "A request is passed on without the header of the hop.",
		plant: func(acted func()) sim.Defects {
			return sending(func(r *http.Request) {
				acted()
				r.Header.Del(proxy.HopHeader)
			})
		},
	},
	{
		part: "hop", name: "passed-back", rare: true,
		wrong:   "A request is passed on without the header of the hop, and custom resources in peers' documents count like built-in ones.",
		changes: []string{"Knowledge.Extensions=ignored", "Fetching.AfterChange=0s", "Fetching.LastRetry=30s", "Fetching.FirstRetry=10s"},
		plant: func(acted func()) sim.Defects {
			return sending(func(r *http.Request) {
				acted()
				r.Header.Del(proxy.HopHeader)
			})
		},
	},
	{
		part: "hop", name: "client-believed",
		wrong:   "A server takes a client's header for a peer's.",
		changes: []string{"Quirks.TrustAnyHop=true"},
	},
	{
		part: "hop", name: "absence-at-hop", rare: true,
		wrong:   "A server answers 404 rather than 503 to a peer's request for a resource that it does not serve.",
		changes: []string{"Routing.RefuseAtHop=false"},
	},
}
