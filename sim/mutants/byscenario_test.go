package mutants

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
	"github.com/skewproof/skewproof/sim"
)

// byScenario are mutants that only the traffic of a scenario can find: random schedules do not ask for what they spoil.
var byScenario = []mutant{
	{
		part: "discovery", name: "own-view-of-all",
		wrong: "A client that asks a server for what it serves itself is told what its peers serve too.",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Handler: func(_ proxy.ServerID, h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if discovery.WantsNoPeer(r.Header.Get("Accept")) && !fromPeer(r) {
						acted()
						r = r.Clone(r.Context())
						r.Header.Set("Accept", discovery.AcceptV2)
					}
					h.ServeHTTP(w, r)
				})
			}}
		},
	},
	{
		part: "discovery", name: "nothing-is-ever-modified",
		wrong: "A client that has a merged document is told that it is still the right one, whatever has changed.",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Handler: func(_ proxy.ServerID, h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if tag := r.Header.Get("If-None-Match"); tag != "" {
						acted()
						w.Header().Set("ETag", tag)
						w.WriteHeader(http.StatusNotModified)
						return
					}
					h.ServeHTTP(w, r)
				})
			}}
		},
	},
	{
		part: "hop", name: "client-believed-and-denied",
		wrong:   "A client's header is believed to be a peer's, and what is not served here then is answered 404.",
		changes: []string{"Routing.TrustAnyHop=true", "Routing.RefuseAtHop=false"},
	},
	{
		part: "stream", name: "last-object-lost",
		wrong: "Of a list that comes from a peer the last object is lost.",
		plant: func(acted func()) sim.Defects {
			return returning(func(r *http.Request, answer *http.Response) {
				body, err := io.ReadAll(answer.Body)
				if err == nil && strings.Contains(r.URL.RawQuery, "labelSelector") {
					acted()
					body = bytes.Replace(body, []byte("},{}]"), []byte("}]"), 1)
					answer.Header.Del("Content-Length")
					answer.ContentLength = -1
				}
				answer.Body = io.NopCloser(bytes.NewReader(body))
			})
		},
	},
	{
		part: "stream", name: "always-called-text",
		wrong: "What comes from a peer is said to be plain text, whatever it is.",
		plant: func(acted func()) sim.Defects {
			return returning(func(_ *http.Request, answer *http.Response) {
				acted()
				answer.Header.Set("Content-Type", "text/plain")
			})
		},
	},
}
