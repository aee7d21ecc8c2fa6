package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// The test checks flags by their effect. An incomplete peer address leads nowhere. If the server
// used it, the address would be in the endpoint lease and peers would dial it. v1.37.1 ignores it,
// and uses --advertise-address with its own port instead.
func TestHalfAnAdvertisedAddressIsLeftAside(t *testing.T) {
	onlyWithAll(t)
	r, _ := runScenario(t, "advertised-address-half")
	h, err := history.ReadFile(filepath.Join(r.dir, "history.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Effects) != 2 {
		t.Fatalf("%d effects in the history, want those of an address without a port, and of a port without an address: %+v", len(h.Effects), h.Effects)
	}
	const right = "198.19.0.1:6443"
	for _, e := range h.Effects {
		if e.Server != "a" || e.Setup == "" || e.Advertised != right {
			t.Errorf("%q: the lease of %s says %q, want %s", e.Setup, e.Server, e.Advertised, right)
		}
		if !strings.HasPrefix(e.Certificate, "CN=a by CN=skewproof ca") {
			t.Errorf("%q: it shows the certificate %q", e.Setup, e.Certificate)
		}
		peers := 0
		for _, d := range e.Dials {
			if d.Address != right {
				t.Errorf("%q: %s dialled %s %d times", e.Setup, d.From, d.Address, d.Connections)
			}
			if d.From != "client" {
				peers += d.Connections
			}
		}
		if peers == 0 {
			t.Errorf("%q: no peer dialled it: %+v", e.Setup, e.Dials)
		}
	}
}
