package mutants

import (
	"net/http"
	"strings"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/recorded"
)

// servers are mutants of the simulated apiserver.
var servers = []mutant{
	{
		part: "apiserver", name: "serves-what-it-does-not-list",
		wrong: "The local server answers with an empty list for resources that it does not list.",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Local: func(_ proxy.ServerID, h http.Handler) http.Handler {
				return changing(h, func(r *http.Request, a *answer) {
					if a.status == http.StatusNotFound && a.header.Get("Content-Type") != "application/json" {
						acted()
						a.replace(http.StatusOK, "application/json", emptyList)
					}
				})
			}}
		},
	},
	{
		part: "apiserver", name: "lists-what-it-does-not-serve",
		wrong: "The local server lists a resource and answers 404 for it.",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Local: func(_ proxy.ServerID, h http.Handler) http.Handler {
				return changing(h, func(r *http.Request, a *answer) {
					if strings.HasPrefix(r.URL.Path, "/api/") && a.status != http.StatusNotFound {
						acted()
						a.unknown()
					}
				})
			}}
		},
	},
	{
		part: "apiserver", name: "now-and-then-busy",
		wrong: "The local server answers 503 to every seventh request that it could serve.",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Local: func(_ proxy.ServerID, h http.Handler) http.Handler {
				asked := 0
				return changing(h, func(_ *http.Request, a *answer) {
					if asked++; asked%7 == 0 && a.status == http.StatusOK {
						acted()
						a.replace(http.StatusServiceUnavailable, "application/json", failure)
					}
				})
			}}
		},
	},
	{
		part: "apiserver", name: "lists-what-the-next-version-serves",
		wrong: "A server lists the resources of the next version, and serves those of its own.",
		setup: func(setup sim.Setup, acted func()) sim.Setup {
			version := setup.Version
			made := map[string]*recorded.Version{}
			setup.Version = func(name string) (*recorded.Version, error) {
				v, err := version(name)
				if err != nil || name != spec.From {
					return v, err
				}
				acted()
				if made[name] == nil {
					next, err := version(spec.To)
					if err != nil {
						return nil, err
					}
					made[name] = &recorded.Version{Name: v.Name, Roots: next.Roots, Document: v.Document, Bodies: next.Bodies}
				}
				return made[name], nil
			}
			return setup
		},
	},
	{
		part: "apiserver", name: "dies-of-a-failed-fetch",
		wrong:   "A process ends after a failed fetch of a peer's discovery.",
		changes: []string{"Quirks.CrashOnFailedFetch=true"},
	},
}
