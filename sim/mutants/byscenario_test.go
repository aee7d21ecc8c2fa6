package mutants

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
	"github.com/skewproof/skewproof/sim"
)

// byScenario are mutants that only the traffic of a scenario can find. Random schedules have no
// requests, or too few, that these mutants affect.
var byScenario = []mutant{
	{
		part: "discovery", name: "own-view-of-all",
		wrong: "A server that is asked for its own resources (profile=nopeer) lists those of its peers too.",
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
		wrong: "A server answers 304 to every client that has a merged document, even if the document has changed.",
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
		wrong:   "A server takes a client's header for a peer's, and then answers 404 for resources that it does not serve.",
		changes: []string{"Quirks.TrustAnyHop=true", "Routing.RefuseAtHop=false"},
	},
	{
		part: "stream", name: "last-object-lost",
		wrong: "The last object of a list from a peer is lost.",
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
		part: "stream", name: "object-altered",
		wrong: "A field of an object that comes from a peer is changed on the way.",
		plant: func(acted func()) sim.Defects {
			return returning(func(_ *http.Request, answer *http.Response) {
				if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "application/json" {
					return
				}
				body, err := io.ReadAll(answer.Body)
				if altered := bytes.Replace(body, []byte(`"kind":"Object"`), []byte(`"kind":"Objekt"`), 1); err == nil && !bytes.Equal(altered, body) {
					acted()
					body = altered
				}
				answer.Body = io.NopCloser(bytes.NewReader(body))
			})
		},
	},
	{
		part: "stream", name: "always-called-text",
		wrong: "Every response of a peer is passed back with the media type text/plain.",
		plant: func(acted func()) sim.Defects {
			return returning(func(_ *http.Request, answer *http.Response) {
				acted()
				answer.Header.Set("Content-Type", "text/plain")
			})
		},
	},
	{
		part: "discovery", name: "last-group-forgotten",
		wrong: "Legacy discovery lacks the last group.",
		plant: func(acted func()) sim.Defects {
			return answering(func(_ *http.Request, a *answer) {
				var list metav1.APIGroupList
				if a.path == "/apis" && json.Unmarshal(a.body, &list) == nil && list.Kind == "APIGroupList" && len(list.Groups) > 0 {
					acted()
					list.Groups = list.Groups[:len(list.Groups)-1]
					a.body, _ = json.Marshal(list)
				}
			})
		},
	},
	{
		part: "stream", name: "broken-looks-complete",
		wrong: "A response that breaks off at the peer looks complete to the client.",
		plant: func(acted func()) sim.Defects {
			return returning(func(_ *http.Request, answer *http.Response) {
				if answer.StatusCode == http.StatusSwitchingProtocols {
					return
				}
				answer.Body = &unbroken{answer.Body, acted}
				answer.Header.Del("Content-Length") // otherwise the client would see that something is missing
				answer.ContentLength = -1
			})
		},
	},
	{
		part: "stream", name: "upgrade-answered-plainly",
		wrong: "A request for a WebSocket is passed on without the headers that ask for it, so the peer answers 200.",
		plant: func(acted func()) sim.Defects {
			return sending(func(r *http.Request) {
				if r.Header.Get("Upgrade") != "" {
					acted()
					r.Header.Del("Upgrade")
					r.Header.Del("Connection")
				}
			})
		},
	},
	{
		part: "identity", name: "groups-lost-on-upgrade",
		wrong: "A request for a WebSocket is passed on with the name of the user but without the groups.",
		plant: func(acted func()) sim.Defects {
			return sending(func(r *http.Request) {
				if r.Header.Get("Upgrade") != "" {
					acted()
					r.Header.Del("X-Remote-Group")
				}
			})
		},
	},
	{
		part: "stream", name: "watch-cut-short",
		wrong: "A watch that is passed on ends right after it has begun.",
		plant: func(acted func()) sim.Defects {
			return returning(func(r *http.Request, answer *http.Response) {
				if isWatch(r, answer) {
					acted()
					answer.Body = silent(answer.Body, false)
				}
			})
		},
	},
	{
		part: "stream", name: "watch-without-events",
		wrong: "A watch that is passed on lasts as long as it should, but delivers no event.",
		plant: func(acted func()) sim.Defects {
			return returning(func(r *http.Request, answer *http.Response) {
				if isWatch(r, answer) {
					acted()
					answer.Body = silent(answer.Body, true)
				}
			})
		},
	},
	{
		part: "status", name: "every-other-refused",
		wrong: "A server answers 503 to every second request that a peer has answered.",
		plant: func(acted func()) sim.Defects {
			refuse := false
			return returning(func(_ *http.Request, answer *http.Response) {
				if refuse = !refuse; refuse {
					acted()
					answer.StatusCode = http.StatusServiceUnavailable
				}
			})
		},
	},
	{
		part: "status", name: "waits-for-what-is-gone",
		wrong: "A request whose servers cannot be reached gets no answer: the client waits.",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Handler: func(_ proxy.ServerID, h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					held := &holder{to: w}
					held.serve(h, r)
					switch {
					case held.streaming:
					case held.status == http.StatusServiceUnavailable && !fromPeer(r):
						acted()
						if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
							_, _ = conn.Read(nil) // until the client closes the connection
						}
					default:
						held.stream()
					}
				})
			}}
		},
	},
}

// isWatch reports whether the answer is the start of a watch at a peer.
func isWatch(r *http.Request, answer *http.Response) bool {
	return r.URL.Query().Get("watch") == "true" && (answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusSwitchingProtocols)
}

// silent returns a body without data. It ends at once, or, if lasts is true, at the end of the
// given body.
func silent(body io.ReadCloser, lasts bool) io.ReadCloser {
	if socket, ok := body.(io.ReadWriteCloser); ok { // the connection was upgraded
		return struct {
			io.Reader
			io.Writer
			io.Closer
		}{discarded{body, lasts}, socket, body}
	}
	return struct {
		io.Reader
		io.Closer
	}{discarded{body, lasts}, body}
}

type discarded struct {
	io.Reader
	lasts bool
}

func (d discarded) Read([]byte) (int, error) {
	if !d.lasts {
		return 0, io.EOF
	}
	if _, err := io.Copy(io.Discard, d.Reader); err != nil {
		return 0, err
	}
	return 0, io.EOF
}
