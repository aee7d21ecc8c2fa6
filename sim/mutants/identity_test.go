package mutants

import (
	"io"
	"net/http"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
)

// identities are mutants of the user of a forwarded request.
var identities = []mutant{
	{
		part: "identity", name: "user-dropped",
		wrong: "A request is passed on without the user.",
		plant: func(acted func()) sim.Defects {
			return sending(func(r *http.Request) {
				acted()
				r.Header.Del(userHeader)
			})
		},
	},
	{
		part: "identity", name: "proxy-asks-for-itself",
		wrong: "A request is passed on as that of the server rather than of the user.",
		plant: func(acted func()) sim.Defects {
			return sending(func(r *http.Request) {
				acted()
				r.Header.Set(userHeader, "system:kube-aggregator")
			})
		},
	},
	{
		part: "identity", name: "groups-lost",
		wrong: "A request is passed on with the name of the user but without the groups.",
		plant: func(acted func()) sim.Defects {
			return sending(func(r *http.Request) {
				acted()
				r.Header.Del("X-Remote-Group")
			})
		},
	},
	{
		part: "identity", name: "extra-fields-lost",
		wrong: "A request is passed on with the name and the groups of the user but without the extra fields.",
		plant: func(acted func()) sim.Defects {
			return sending(func(r *http.Request) {
				acted()
				r.Header.Del("X-Remote-Extra-Scopes")
			})
		},
	},
	{
		part: "identity", name: "unauthenticated-at-peer",
		wrong: "A request is passed on without any identity, and the peer's 401 is passed back.",
		plant: func(acted func()) sim.Defects {
			const lost = "X-Mutant-Lost"
			defects := sending(func(r *http.Request) {
				acted()
				r.Header.Del(userHeader)
				r.Header.Set(lost, "true")
			})
			defects.Handler = func(_ proxy.ServerID, h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get(lost) == "" {
						h.ServeHTTP(w, r)
						return
					}
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusUnauthorized)
					_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`)
				})
			}
			return defects
		},
	},
	{
		part: "identity", name: "user-of-first-request",
		wrong: "A connection to a peer keeps the user of the first request that went over it.",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Transport: func(next http.RoundTripper) http.RoundTripper {
				first := map[string]string{}
				return sending(func(r *http.Request) {
					user, ok := first[r.URL.Host]
					switch {
					case !ok:
						first[r.URL.Host] = r.Header.Get(userHeader)
					case user != r.Header.Get(userHeader):
						acted()
						r.Header.Set(userHeader, user)
					}
				}).Transport(next)
			}}
		},
	},
	{
		part: "identity", name: "user-swapped-on-failover",
		wrong: "The second attempt names another user than the first.",
		plant: func(acted func()) sim.Defects {
			return onCalls(func(c *call, r *http.Request) *http.Request {
				if len(c.tried) > 0 {
					acted()
					r = r.Clone(r.Context())
					r.Header.Set(userHeader, string(c.self))
				}
				return r
			})
		},
	},
}
