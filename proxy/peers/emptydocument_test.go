package peers

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// cutAfter answers 200, with an ETag, and sends the part of a document that take returns. Then it
// resets the stream if resets is true. Otherwise the answer ends as if it were complete.
func cutAfter(s *server, take func(body []byte) []byte, resets bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-None-Match")
		whole := &body{header: w.Header()}
		s.document(whole, r, s.apis, true)
		w.Header().Set("ETag", `"of a part"`)
		_, _ = w.Write(take(whole.written))
		_ = http.NewResponseController(w).Flush()
		if resets {
			panic(http.ErrAbortHandler)
		}
	}
}

// body is the body of an answer.
type body struct {
	header  http.Header
	written []byte
}

func (b *body) Header() http.Header { return b.header }
func (b *body) WriteHeader(int)     {}
func (b *body) Write(p []byte) (int, error) {
	b.written = append(b.written, p...)
	return len(p), nil
}

// TestEmptyIsDocument: under EmptyIsDocument, an empty body is a document that lists nothing, and
// it replaces the earlier knowledge. Its ETag is not stored, because otherwise every later answer
// would be a 304.
func TestEmptyIsDocument(t *testing.T) {
	nothing := func([]byte) []byte { return nil }
	half := func(body []byte) []byte { return body[:len(body)/2] }
	all := func(body []byte) []byte { return body }
	for name, c := range map[string]struct {
		take   func([]byte) []byte
		resets bool
		fails  [2]bool // without EmptyIsDocument, and with it
		lists  int     // the number of groups, with it
	}{
		"empty":                        {nothing, false, [2]bool{true, false}, 0},
		"broken off":                   {nothing, true, [2]bool{true, false}, 0},
		"cut short":                    {half, true, [2]bool{true, true}, 0},
		"broken off when all has come": {all, true, [2]bool{true, false}, 1},
	} {
		for i, policy := range []string{"without", "with"} {
			t.Run(name+", "+policy, func(t *testing.T) {
				s := newServer(t, "v1.37.1", "apps/v1 deployments")
				client, address := serveTLS(t, s)
				client.EmptyIsDocument = i == 1
				before := client.ask(t.Context(), address, nil)
				s.set(func() { s.failing["/apis"] = cutAfter(s, c.take, c.resets) })
				during := client.ask(t.Context(), address, before)
				if got := during.Roots[proxy.RootGroups]; (got.Failed != "") != c.fails[i] || i == 1 && len(got.Groups) != c.lists {
					t.Errorf("%+v, want failed: %t", got, c.fails[i])
				}
				s.set(func() { clear(s.failing) })
				after := client.ask(t.Context(), address, during)
				if diff := cmp.Diff(proxy.RootResult{Groups: s.apis}, after.Roots[proxy.RootGroups]); diff != "" {
					t.Errorf("afterwards (want -, got +):\n%s", diff)
				}
				for _, r := range s.take() {
					if r.Header.Get("If-None-Match") == `"of a part"` && c.lists == 0 {
						t.Error("the server is asked whether nothing has changed")
					}
				}
			})
		}
	}
}

// A timeout says nothing about the document, under every policy.
func TestTimeoutIsNotDocument(t *testing.T) {
	s := newServer(t, "v1.37.1")
	client, address := serveTLS(t, s)
	client.EmptyIsDocument, client.Timeout = true, 50*time.Millisecond
	s.failing["/apis"] = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", discovery.AcceptV2)
		_ = http.NewResponseController(w).Flush()
		hang(w, r)
	}
	if a := client.ask(t.Context(), address, nil); a.Roots[proxy.RootGroups].Failed != "it did not answer in time" {
		t.Errorf("%+v", a.Roots[proxy.RootGroups])
	}
}
