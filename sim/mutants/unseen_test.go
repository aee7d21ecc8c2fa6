package mutants

import (
	"context"
	"net/http"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
)

// unseen are mutants that act but that no invariant finds, each with the reason. The list shows
// what the invariants do not check.
var unseen = []mutant{
	{
		part: "stream", name: "watch-held-back",
		wrong: "The events of a watch are sent at its end rather than one by one.",
		blind: "no invariant says when an event must come, and nothing but the client ends a watch",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Handler: func(_ proxy.ServerID, h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					h.ServeHTTP(unflushed{w, acted}, r)
				})
			}}
		},
	},
	{
		part: "stream", name: "cancel-not-passed-on",
		wrong: "If the client closes its connection, the peer continues to handle the request.",
		blind: "no invariant checks how long a server works on a request after the client has closed its connection",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Transport: func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					return next.RoundTrip(r.WithContext(deaf{r.Context(), acted}))
				})
			}}
		},
	},
	{
		part: "hop", name: "header-reaches-local-server",
		wrong: "The header of the hop is passed on to the local server.",
		blind: "the simulated apiserver does not look at the header",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Local: func(_ proxy.ServerID, h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if fromPeer(r) {
						acted()
						clean := *r
						clean.Header = r.Header.Clone()
						clean.Header.Set(proxy.HopHeader, "true")
						r = &clean
					}
					h.ServeHTTP(w, r)
				})
			}}
		},
	},
	{
		part: "table", name: "watch-stall-unnoticed",
		wrong: "A server whose lease watch has stalled continues as if it knew all peers.",
		blind: "no invariant demands that a server without etcd knows what changed in that time",
		plant: func(acted func()) sim.Defects {
			return ignoring(acted, func(_ proxy.ServerID, e proxy.Event) bool {
				_, stalled := e.(proxy.LeaseWatch)
				return stalled
			})
		},
	},
	{
		part: "table", name: "extensions-from-peers",
		wrong: "Custom resources in peers' documents count like built-in ones.",
		blind: "a server asks its peers every three seconds, so wrong knowledge does not last longer than the staleness bound",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Events: func(_ proxy.ServerID, events []proxy.Event) []proxy.Event {
				return changed(events, func(e proxy.Event) proxy.Event {
					extensions, ok := e.(proxy.Extensions)
					if !ok || len(extensions.CustomResources) == 0 {
						return e
					}
					acted()
					return proxy.Extensions{At: extensions.At}
				})
			}}
		},
	},
	{
		part: "hop", name: "refusal-not-understood",
		wrong: "A peer's refusal of a request that it does not serve loses its mark: the 503 counts as the answer.",
		blind: "wrong knowledge does not last longer than the staleness bound",
		plant: func(acted func()) sim.Defects {
			return returning(func(_ *http.Request, answer *http.Response) {
				if answer.Header.Get(proxy.RefusedHeader) != "" {
					acted()
					answer.Header.Del(proxy.RefusedHeader)
				}
			})
		},
	},
}

// deaf is a context that ignores that the client has closed its connection. It still ends when the
// time of an attempt is over.
type deaf struct {
	context.Context
	acted func()
}

func (d deaf) Err() error {
	err := d.Context.Err()
	if err != nil && context.Cause(d.Context) == context.Canceled { // of a client, as it is
		d.acted()
		return nil
	}
	return err
}
