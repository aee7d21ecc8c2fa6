package mutants

import (
	"net/http"

	"github.com/skewproof/skewproof/sim"
)

// failovers are mutants of the behaviour after a peer fails.
var failovers = []mutant{
	{
		part: "failover", name: "none",
		wrong:   "Only one peer is tried.",
		changes: []string{"Routing.Attempts=1"},
	},
	{
		part: "failover", name: "same-peer-again",
		wrong: "The second and third attempts go to the peer that failed.",
		plant: func(acted func()) sim.Defects {
			return onCalls(func(c *call, r *http.Request) *http.Request {
				if len(c.tried) > 0 && r.URL.Host != c.tried[0] {
					acted()
					r = to(c.tried[0], r)
				}
				return r
			})
		},
	},
	{
		part: "failover", name: "last-peer-given-up",
		wrong: "A peer that failed is never tried again, even if no other peer can serve the request.",
		plant: func(acted func()) sim.Defects {
			failed := lives[map[string]bool]{}
			d := onCalls(func(_ *call, r *http.Request) *http.Request { return r })
			transport := d.Transport
			d.Transport = func(next http.RoundTripper) http.RoundTripper {
				next = transport(next)
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					known := failed[r.Context().Value(callKey{}).(*call).self]
					if (*known)[r.URL.Host] {
						acted()
						return nil, errAvoided
					}
					answer, err := next.RoundTrip(r)
					if err != nil && r.Context().Err() == nil {
						if *known == nil {
							*known = map[string]bool{}
						}
						(*known)[r.URL.Host] = true
					}
					return answer, err
				})
			}
			d.Local = failed.begin
			return d
		},
	},
}
