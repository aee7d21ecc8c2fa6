package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/skewproof/skewproof/proxy/internal/replay"
)

// mentionsHop returns where a request mentions the hop, in a header's name or value.
func mentionsHop(h ...http.Header) string {
	for _, header := range h {
		for name, values := range header {
			for _, n := range []string{HopHeader, HopHeaderPublished, RefusedHeader} {
				if strings.EqualFold(name, n) || strings.Contains(strings.ToLower(strings.Join(values, " ")), strings.ToLower(n)) {
					return name + ": " + strings.Join(values, " | ")
				}
			}
		}
	}
	return ""
}

var plainHopHeader = regexp.MustCompile(`(?im)^x-kubernetes-peer-proxied ?: true\r?$`)

// plainHop reports whether a request has the hop header in its plain form at most: once, with the
// value true, and in no other place. Only such requests are in this repository, because others may
// do harm to released servers.
func plainHop(request string) bool {
	mentions := strings.Count(strings.ToLower(request), strings.ToLower(HopHeader))
	return mentions == 0 || mentions == 1 && plainHopHeader.MatchString(request)
}

func TestInputsOfFuzzersHaveThePlainHopHeader(t *testing.T) {
	inputs, err := filepath.Glob("testdata/fuzz/*/*")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("%d inputs of fuzzers, error %v", len(inputs), err)
	}
	for _, input := range inputs {
		if text, err := os.ReadFile(input); err != nil || !plainHop(string(text)) {
			t.Errorf("%s, error %v", input, err)
		}
	}
}

func TestHopHeader(t *testing.T) {
	for name, c := range map[string]struct {
		policy Policy
		peer   bool // the caller is a peer
		header http.Header
		want   bool // the header counts
	}{
		"none":                            {Reference(), true, nil, false},
		"of a peer":                       {Reference(), true, http.Header{HopHeader: {"true"}}, true},
		"of a peer, the published name":   {Reference(), true, http.Header{HopHeaderPublished: {"true"}}, true},
		"of a peer, beside another value": {Reference(), true, http.Header{HopHeaderPublished: {"false", "TRUE"}}, true},
		"of a peer, but not true":         {Reference(), true, http.Header{HopHeaderPublished: {"false", ""}}, false},
		"of a client":                     {Reference(), false, http.Header{HopHeader: {"true"}}, false},
		"of a client, the other name":     {Reference(), false, http.Header{HopHeaderPublished: {"true"}}, false},
		"upstream believes everybody":     {Upstream137(), false, http.Header{HopHeader: {"true"}}, true},
		"upstream: not the other name":    {Upstream137(), true, http.Header{HopHeaderPublished: {"true"}}, false},
		"another header is not a hop":     {Reference(), true, http.Header{"X-Kubernetes-Peer-Proxies": {"true"}}, false},
		"the refusal is not a hop":        {Reference(), true, http.Header{RefusedHeader: {"true"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			if err := c.header.Write(&text); err != nil || !plainHop(text.String()) {
				t.Fatalf("%s, error %v", text.String(), err)
			}
			var sent *http.Request
			s := newShell(t, c.policy, capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
				sent = r
				return says(200, "peer"), nil
			}), func(config *Config) { config.FromPeer = func(*http.Request) bool { return c.peer } })
			for _, path := range []string{gadgetsPath, jobsPath} {
				sent, s.local.last = nil, nil
				r := httptest.NewRequest("GET", path, nil)
				for name, values := range c.header {
					r.Header[name] = values
				}
				got := s.serve(r)
				hopped := sent == nil
				if path == gadgetsPath && hopped != c.want {
					t.Errorf("counts as rerouted: %v, want %v", hopped, c.want)
				}
				if sent != nil {
					if diff := cmp.Diff([]string{"true"}, sent.Header[HopHeader]); diff != "" && !c.policy.Quirks.TrustAnyHop {
						t.Errorf("on the hop (-want +got):\n%s", diff)
					}
					delete(sent.Header, HopHeader)
					if said := mentionsHop(sent.Header, sent.Trailer); said != "" && !c.policy.Quirks.TrustAnyHop {
						t.Errorf("sent on besides: %s", said)
					}
				}
				if last := s.local.request(); last != nil && !c.policy.Quirks.TrustAnyHop {
					if said := mentionsHop(last.Header, last.Trailer); said != "" {
						t.Errorf("the local server sees %s", said)
					}
				}
				if said := mentionsHop(got.Header()); said != "" && (path == jobsPath || !c.want || !c.peer) {
					t.Errorf("the client sees %s", said)
				}
				if diff := cmp.Diff(c.header, r.Header, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("the caller's own request was changed (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestRefusal(t *testing.T) {
	never := neverAsked(t)
	t.Run("is marked for a peer", func(t *testing.T) {
		s := newShell(t, Reference(), capablePeers(nil, "a"), never, fromPeers)
		got := s.ask("POST", gadgetsPath, "body", HopHeader, "true")
		if got.Code != 503 || got.Header().Get(RefusedHeader) == "" {
			t.Errorf("%d %v, want a marked 503", got.Code, got.Header())
		}
		if s.local.request() != nil {
			t.Error("the local server got a request for a resource that it does not serve")
		}
	})
	t.Run("upstream lets the local server say 404", func(t *testing.T) {
		s := newShell(t, Upstream137(), capablePeers(nil, "a"), never)
		if got := s.ask("POST", gadgetsPath, "body", HopHeader, "true"); got.Body.String() != "local" {
			t.Errorf("%d %s, want the local server's answer", got.Code, got.Body)
		}
	})
	t.Run("sends the request to the next peer, body and all", func(t *testing.T) {
		var bodies []string
		s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) {
			body, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(body))
			if strings.HasPrefix(r.URL.Host, "a.") {
				return says(503, "not here", RefusedHeader, "true"), nil
			}
			return says(201, "made"), nil
		}))
		got := s.ask("POST", gadgetsPath, "the body")
		if got.Code != 201 || mentionsHop(got.Header()) != "" {
			t.Errorf("%d %v, want b's 201 without the header of the hop", got.Code, got.Header())
		}
		if diff := cmp.Diff([]string{"the body", "the body"}, bodies); diff != "" {
			t.Errorf("bodies (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"a refused", "b answered"}, s.seen.outcomes()); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		if p := s.store.Table().Peers()[0]; !p.EjectedUntil.IsZero() {
			t.Error("the peer is avoided though it answered")
		}
	})
	t.Run("by all is a 503 of our own", func(t *testing.T) {
		s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) {
			return says(503, "not here", RefusedHeader, "true"), nil
		}))
		got := s.ask("POST", gadgetsPath, "the body")
		if got.Code != 503 || mentionsHop(got.Header()) != "" || !strings.Contains(got.Body.String(), "a: it does not serve this") {
			t.Errorf("%d %v %s, want a 503 with the reason, without the mark", got.Code, got.Header(), got.Body)
		}
		if got.Header().Get("Retry-After") == "" {
			t.Error("no Retry-After although no server has carried the request out")
		}
	})
	t.Run("of a body too long to be sent again is a 503", func(t *testing.T) {
		s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) {
			io.Copy(io.Discard, r.Body)
			return says(503, "not here", RefusedHeader, "true"), nil
		}))
		got := s.ask("POST", gadgetsPath, strings.Repeat("x", replay.Bound+1))
		if got.Code != 503 || got.Header().Get("Retry-After") == "" {
			t.Errorf("%d %v, want a 503 after which the client may try again", got.Code, got.Header())
		}
		if diff := cmp.Diff([]string{"a refused"}, s.seen.outcomes()); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		if last := s.seen.decisions[len(s.seen.decisions)-1]; last.Reason != ReasonNotRepeatable {
			t.Errorf("decided %q at last, want %q", last.Reason, ReasonNotRepeatable)
		}
	})
	t.Run("does not count if a backend behind the local server sets it", func(t *testing.T) {
		s := newShell(t, Reference(), capablePeers(nil, "a"), never, fromPeers)
		s.local.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(RefusedHeader, "true")
			w.WriteHeader(503)
			if _, ok := w.(http.Flusher); !ok {
				t.Error("the local server cannot flush")
			}
		})
		server := httptest.NewServer(s)
		defer server.Close()
		r, _ := http.NewRequest("GET", server.URL+jobsPath, nil)
		r.Header.Set(HopHeader, "true")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != 503 || answer.Header.Get(RefusedHeader) != "" {
			t.Errorf("%d %v, want the 503 without the mark", answer.StatusCode, answer.Header)
		}
	})
}
