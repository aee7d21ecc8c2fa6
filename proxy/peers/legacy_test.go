package peers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// A list in the old form that breaks off says nothing about the server's age. The client does not
// ask for its group versions.
func TestClientDoesNotFallBackIfTheAnswerBreaksOff(t *testing.T) {
	for _, breaks := range []bool{false, true} {
		s := newServer(t, "v1.25.0")
		s.failing["/apis"] = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
			_ = http.NewResponseController(w).Flush()
			if breaks {
				panic(http.ErrAbortHandler)
			}
		}
		c, address := serveTLS(t, s)
		a := c.ask(t.Context(), address, nil)
		asked := 0
		for _, r := range s.take() {
			if r.URL.Path == "/apis" {
				asked++
			}
		}
		if failed, again := a.Roots[proxy.RootGroups].Failed != "", asked > 1; failed != breaks || again == breaks {
			t.Errorf("breaks off: %t; failed: %t, asked again: %t", breaks, failed, again)
		}
	}
}

// If an old server is too busy to list the resources of a version, this does not mean that the
// version has no resources.
func TestLegacyServerThatIsBusy(t *testing.T) {
	c, address := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":[]}`)
		case "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]}]}`)
		default:
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	if a := c.ask(t.Context(), address, nil); !strings.Contains(a.Roots[proxy.RootGroups].Failed, "429") {
		t.Errorf("%+v, want a failure that says 429", a.Roots[proxy.RootGroups])
	}
}

// A client asks a server without aggregated discovery for each version.
func TestClientFallsBackToLegacy(t *testing.T) {
	answers := map[string]string{
		"/version":      `{"gitVersion":"v1.25.0"}`,
		"/api":          `{"kind":"APIVersions","versions":["v1"]}`,
		"/api/v1":       `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","namespaced":true,"kind":"Pod","verbs":["get"]},{"name":"pods/status","namespaced":true,"kind":"Pod","verbs":["get"]}]}`,
		"/apis":         `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]},{"name":"down.example","versions":[{"groupVersion":"down.example/v1","version":"v1"}]}]}`,
		"/apis/apps/v1": `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments","namespaced":true,"kind":"Deployment","verbs":["get"]}]}`,
	}
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprint("answers 406: ", old), func(t *testing.T) {
			c, address := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, ok := answers[r.URL.Path]
				switch {
				case r.URL.Path == "/apis/down.example/v1":
					http.Error(w, "no backend", http.StatusServiceUnavailable)
				case !ok:
					http.NotFound(w, r)
				case old && strings.Contains(r.Header.Get("Accept"), "as="):
					http.Error(w, "not acceptable", http.StatusNotAcceptable)
				default:
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprint(w, body)
				}
			}))
			for _, together := range []bool{false, true} {
				c.Together = together
				a := c.ask(t.Context(), address, nil)
				if a.Roots[0].Failed != "" || a.Roots[1].Failed != "" || a.Version != "v1.25.0" {
					t.Fatalf("%+v", a)
				}
				core, groups := discovery.NewIndex(a.Roots[0].Groups), discovery.NewIndex(a.Roots[1].Groups)
				if !core.Resource("", "v1", "pods", "status") || !groups.Resource("apps", "v1", "deployments", "") {
					t.Errorf("not everything is listed: %+v", a.Roots)
				}
				if !groups.Version("down.example", "v1") || groups.Resource("down.example", "v1", "things", "") {
					t.Error("a version that cannot be asked must be listed, and empty")
				}
				if again := c.ask(t.Context(), address, a); !same(a.Roots[1].Groups, again.Roots[1].Groups) {
					t.Error("an equal document is another slice")
				}
			}
			c.Legacy = false
			if a := c.ask(t.Context(), address, nil); a.Roots[0].Failed == "" || a.Roots[1].Failed == "" {
				t.Errorf("upstream reads no legacy lists: %+v", a.Roots)
			}
		})
	}
}

// If a list breaks off, its missing part must not count as absent.
func TestClientLegacyIsAllOrNothing(t *testing.T) {
	c, address := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]}]}`)
		case "/apis/apps/v1":
			panic(http.ErrAbortHandler)
		case "/api":
			versions := strings.Repeat(`"v1",`, maxLegacyVersions)
			fmt.Fprintf(w, `{"kind":"APIVersions","versions":[%s"v1"]}`, versions)
		}
	}))
	a := c.ask(t.Context(), address, nil)
	if a.Roots[proxy.RootGroups].Failed == "" || !a.Broken {
		t.Errorf("%+v", a)
	}
	if why := a.Roots[proxy.RootCore].Failed; !strings.Contains(why, "group versions") {
		t.Errorf("a server that lists too many: failed %q", why)
	}
}
