package mutants

import (
	"errors"
	"net/http"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
)

// transports are mutants of the transport to a peer.
var transports = []mutant{
	{
		part: "transport", name: "write-sent-again", rare: true,
		wrong: "A write whose answer is lost is sent to the same peer again.",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Transport: func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					answer, err := next.RoundTrip(r)
					if err == nil || undelivered(err) || r.Context().Err() != nil || r.Method == http.MethodGet || r.GetBody == nil && r.Body != nil {
						return answer, err
					}
					acted()
					again := r.Clone(r.Context())
					if r.GetBody != nil {
						if again.Body, err = r.GetBody(); err != nil {
							return nil, err
						}
					}
					return next.RoundTrip(again)
				})
			}}
		},
	},
	{
		part: "transport", name: "broken-counts-as-undelivered", rare: true,
		wrong: "A connection that breaks before the answer counts as not used, so a write is sent to another peer too.",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Transport: func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					answer, err := next.RoundTrip(r)
					if err != nil && !undelivered(err) && r.Context().Err() == nil {
						acted()
						return nil, notDelivered{err}
					}
					return answer, err
				})
			}}
		},
	},
	{
		part: "transport", name: "first-peer-for-ever",
		wrong: "Every request goes to the peer that was chosen first.",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Transport: func(next http.RoundTripper) http.RoundTripper {
				first := ""
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					if first == "" {
						first = r.URL.Host
					}
					if r.URL.Host != first {
						acted()
						r = to(first, r)
					}
					return next.RoundTrip(r)
				})
			}}
		},
	},
	{
		part: "transport", name: "path-cut",
		wrong: "The last part of a request's path is lost on the way to a peer.",
		plant: func(acted func()) sim.Defects {
			return sending(func(r *http.Request) {
				for i := len(r.URL.Path) - 1; i > 0; i-- {
					if r.URL.Path[i] == '/' {
						acted()
						r.URL.Path = r.URL.Path[:i]
						return
					}
				}
			})
		},
	},
	{
		part: "transport", name: "never-gives-up", rare: true,
		wrong: "A peer that does not answer is asked again and again, while the client waits.",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Transport: func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (answer *http.Response, err error) {
					for range 40 { // practically for ever, except for peers that refuse at once
						if answer, err = next.RoundTrip(r); err == nil || !undelivered(err) || r.Context().Err() != nil {
							break
						}
						acted()
					}
					return answer, err
				})
			}}
		},
	},
	{
		part: "transport", name: "method-changed",
		wrong: "A PATCH is passed on as PUT.",
		plant: func(acted func()) sim.Defects {
			return sending(func(r *http.Request) {
				if r.Method == http.MethodPatch {
					acted()
					r.Method = http.MethodPut
				}
			})
		},
	},
	{
		part: "transport", name: "query-lost",
		wrong: "The query of a request is lost on the way to a peer, so a watch becomes a list.",
		plant: func(acted func()) sim.Defects {
			return sending(func(r *http.Request) {
				if r.URL.RawQuery != "" {
					acted()
					r.URL.RawQuery = ""
				}
			})
		},
	},
	{
		part: "transport", name: "body-spent",
		wrong: "The second attempt of a request has no body.",
		plant: func(acted func()) sim.Defects {
			return onCalls(func(c *call, r *http.Request) *http.Request {
				if len(c.tried) > 0 && r.Body != nil {
					acted()
					r = r.Clone(r.Context())
					r.Body, r.GetBody, r.ContentLength = nil, nil, 0
				}
				return r
			})
		},
	},
}

// roundTripper is a function as a transport.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// sending plants a change of the requests to peers.
func sending(change func(r *http.Request)) sim.Defects {
	return sim.Defects{Transport: func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			change(r)
			return next.RoundTrip(r)
		})
	}}
}

// returning plants a change of the answers from peers.
func returning(change func(r *http.Request, answer *http.Response)) sim.Defects {
	return sim.Defects{Transport: func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err == nil {
				answer.Header = answer.Header.Clone()
				change(r, answer)
			}
			return answer, err
		})
	}}
}

// to returns the request with another peer as its destination.
func to(host string, r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	r.URL.Host = host
	return r
}

// undelivered reports whether the error means that the peer certainly did not receive the request.
func undelivered(err error) bool {
	var said proxy.NotDeliveredError
	return errors.As(err, &said) && said.NotDelivered()
}

// notDelivered wraps another error and says that the request was not delivered.
type notDelivered struct{ error }

func (notDelivered) NotDelivered() bool { return true }

// errAvoided is the error for a peer that is not even tried.
var errAvoided = notDelivered{errors.New("this peer is avoided")}
