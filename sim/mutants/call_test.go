package mutants

import (
	"context"
	"net/http"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
)

// call is the context of a request at the server that received it. By this context, the server's
// transport knows the original request of a forwarded request.
type call struct {
	context.Context
	self  proxy.ServerID
	tried []string // hosts of the peers, in the order in which they were tried
}

type callKey struct{}

func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// AfterFunc calls the simulator's own AfterFunc. Without this method, package context would start a
// goroutine.
func (c *call) AfterFunc(f func()) (stop func() bool) {
	return c.Context.(interface{ AfterFunc(func()) func() bool }).AfterFunc(f)
}

// onCalls plants a change of the requests to peers. The change may depend on the peers tried before
// for the same request.
func onCalls(change func(c *call, r *http.Request) *http.Request) sim.Defects {
	return sim.Defects{
		Handler: func(self proxy.ServerID, h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(w, r.WithContext(&call{Context: r.Context(), self: self}))
			})
		},
		Transport: func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				c := r.Context().Value(callKey{}).(*call)
				r = change(c, r)
				c.tried = append(c.tried, r.URL.Host)
				return next.RoundTrip(r)
			})
		},
	}
}
