package reports

import (
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// The page shows the observed effect of a configuration beside the configuration itself. If no
// effect was seen, the page says so.
func TestEffectsAreShown(t *testing.T) {
	r := small()
	if len(r.Effects) != 2 || r.Effects[0].Server != "a" || r.Effects[1].AtSeconds != 7.9 {
		t.Fatalf("effects %+v, want those of the history in time order", r.Effects)
	}
	page := text(render(t, r))
	for _, want := range []string{
		"its serving certificate: expired", "CN=c by CN=skewproof ca, no. 2a, until 2026-03-13T09:26:53Z", "10.0.0.3:6443: a × 4, client × 1,921",
		"its proxy switched off", "none could be seen", "no lease",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	r.Effects = nil
	if strings.Contains(text(render(t, r)), "was seen to do") {
		t.Error("a run without configurations of its own has a section about them")
	}
}

func TestDialledByAddress(t *testing.T) {
	e := Effect{Dials: []history.Dial{
		{From: "b", Address: "z:1", Connections: 2}, {From: "b", Address: "a:1", Connections: 1},
		{From: "c", Address: "z:1", Connections: 3}, {From: "c", Address: "y:1"},
	}}
	got := strings.Join(e.Dialled(), "; ")
	if want := "a:1: b × 1; z:1: b × 2, c × 3"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Some faults cannot affect any request, such as an address that no server learns. The page shows
// such a fault with its proof.
func TestSeenIsEvidence(t *testing.T) {
	h := smallRun()
	h.Faults = []history.Fault{{ID: 1, Kind: "proxy-off", From: "b", To: "a", Start: at(5), End: at(6), Evidence: history.Evidence{Seen: 1}}}
	f := newFaults(h, h.End.At)[0]
	if !f.Evidence.Effective || f.Evidence.Account() == "" {
		t.Errorf("evidence %+v is described as %q", f.Evidence, f.Evidence.Account())
	}
}
