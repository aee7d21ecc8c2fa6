package mutants

import (
	"net/http"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
)

// statuses are mutants that answer with a wrong status.
var statuses = []mutant{
	{
		part: "status", name: "refusal-becomes-absence",
		wrong: "A request whose servers cannot be reached is answered 404.",
		plant: func(acted func()) sim.Defects {
			return onStatus(http.StatusServiceUnavailable, acted, (*answer).unknown)
		},
	},
	{
		part: "status", name: "refusal-becomes-error",
		wrong: "A request whose servers cannot be reached is answered 500.",
		plant: func(acted func()) sim.Defects {
			return onStatus(http.StatusServiceUnavailable, acted, func(a *answer) {
				a.replace(http.StatusInternalServerError, "application/json", failure)
			})
		},
	},
	{
		part: "status", name: "refusal-becomes-success",
		wrong: "A request whose servers cannot be reached is answered with an empty list.",
		plant: func(acted func()) sim.Defects {
			return onStatus(http.StatusServiceUnavailable, acted, func(a *answer) {
				a.replace(http.StatusOK, "application/json", emptyList)
			})
		},
	},
	{
		part: "status", name: "refusal-breaks-off",
		wrong: "The connection of a request whose servers cannot be reached is broken.",
		plant: func(acted func()) sim.Defects {
			return onStatus(http.StatusServiceUnavailable, acted, func(*answer) { panic(http.ErrAbortHandler) })
		},
	},
	{
		part: "status", name: "absence-becomes-refusal",
		wrong: "A request for a resource that no server serves is answered 503.",
		plant: func(acted func()) sim.Defects {
			return onStatus(http.StatusNotFound, acted, func(a *answer) {
				if a.header.Get("Content-Type") != "application/json" { // otherwise the object is missing
					a.replace(http.StatusServiceUnavailable, "application/json", failure)
				}
			})
		},
	},
	{
		part: "status", name: "absence-becomes-success",
		wrong: "A request for a resource that no server serves is answered with an empty list.",
		plant: func(acted func()) sim.Defects {
			return onStatus(http.StatusNotFound, acted, func(a *answer) {
				if a.header.Get("Content-Type") != "application/json" {
					a.replace(http.StatusOK, "application/json", emptyList)
				}
			})
		},
	},
	{
		part: "status", name: "peers-success-becomes-error",
		wrong: "A peer's 200 is passed on as 502.",
		plant: func(acted func()) sim.Defects {
			return returning(func(_ *http.Request, answer *http.Response) {
				if answer.StatusCode == http.StatusOK {
					acted()
					answer.StatusCode = http.StatusBadGateway
				}
			})
		},
	},
	{
		part: "status", name: "method-refused",
		wrong: "A proxy refuses to pass on a creation: 405.",
		plant: func(acted func()) sim.Defects {
			return returning(func(r *http.Request, answer *http.Response) {
				if r.Method == http.MethodPost {
					acted()
					answer.StatusCode = http.StatusMethodNotAllowed
				}
			})
		},
	},
	{
		part: "status", name: "redirected",
		wrong: "A server answers 307 with the address of the peer to a read that a peer has answered.",
		plant: func(acted func()) sim.Defects {
			return returning(func(r *http.Request, answer *http.Response) {
				if answer.StatusCode == http.StatusOK {
					acted()
					answer.StatusCode = http.StatusTemporaryRedirect
					answer.Header.Set("Location", r.URL.String())
				}
			})
		},
	},
	{
		part: "status", name: "throttled",
		wrong: "A request that is passed on is answered 429.",
		plant: func(acted func()) sim.Defects {
			return returning(func(_ *http.Request, answer *http.Response) {
				if answer.StatusCode < http.StatusBadRequest && answer.StatusCode != http.StatusSwitchingProtocols {
					acted()
					answer.StatusCode = http.StatusTooManyRequests
				}
			})
		},
	},
	{
		part: "status", name: "counted-as-success",
		wrong: "A server counts every answer of a peer as 200.",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Counts: func(status int) int {
				if status != http.StatusOK {
					acted()
				}
				return http.StatusOK
			}}
		},
	},
	{
		part: "status", name: "missing-object-becomes-missing-resource",
		wrong: "The local server answers for a missing object as for a missing resource.",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Local: func(_ proxy.ServerID, h http.Handler) http.Handler {
				return changing(h, func(_ *http.Request, a *answer) {
					if a.status == http.StatusNotFound && a.header.Get("Content-Type") == "application/json" {
						acted()
						a.unknown()
					}
				})
			}}
		},
	},
}

// onStatus plants a change of the answers with one status.
func onStatus(status int, acted func(), change func(*answer)) sim.Defects {
	return answering(func(_ *http.Request, a *answer) {
		if a.status == status {
			acted()
			change(a)
		}
	})
}
