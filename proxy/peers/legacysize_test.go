package peers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// All lists of a server without aggregated discovery together may be as long as one document.
func TestLegacyListsAreBoundedTogether(t *testing.T) {
	const versions, size = 64, 1 << 20
	var sent atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":[]}`)
		case "/apis":
			var all []string
			for i := range versions {
				all = append(all, fmt.Sprintf(`{"groupVersion":"g/v%d","version":"v%d"}`, i, i))
			}
			fmt.Fprintf(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"g","versions":[%s]}]}`, strings.Join(all, ","))
		default:
			n, _ := fmt.Fprintf(w, `{"kind":"APIResourceList","groupVersion":%q,"resources":[]%s}`, strings.TrimPrefix(r.URL.Path, "/apis/"), strings.Repeat(" ", size))
			sent.Add(int64(n))
		}
	}))
	defer server.Close()
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, together := range []bool{false, true} {
		sent.Store(0)
		client := &discoveryClient{Transport: server.Client().Transport, Accept: localAccept, Legacy: true, Together: together}
		answer := client.ask(t.Context(), *address, nil)
		if failed := answer.Roots[proxy.RootGroups].Failed; !strings.Contains(failed, "longer than") {
			t.Errorf("together %t: %q and %d group versions, want it to be too long", together, failed, len(answer.Roots[proxy.RootGroups].Groups))
		}
		if n := sent.Load(); n > discovery.MaxBody+(legacyWorkers+1)*2*size {
			t.Errorf("together %t: %d bytes were fetched, want about %d at most", together, n, discovery.MaxBody)
		}
	}
}
