package mutants

import (
	"net/http"
	"testing"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
)

// control uses every hook, and no hook changes anything.
var control = mutant{
	part: "control", name: "nothing", wrong: "Nothing.",
	plant: func(acted func()) sim.Defects {
		d := onCalls(func(_ *call, r *http.Request) *http.Request { return r })
		handler := d.Handler
		d.Handler = func(self proxy.ServerID, h http.Handler) http.Handler {
			return changing(handler(self, h), func(*http.Request, *answer) { acted() })
		}
		d.Local = func(_ proxy.ServerID, h http.Handler) http.Handler {
			return changing(h, func(*http.Request, *answer) {})
		}
		d.Events = func(_ proxy.ServerID, events []proxy.Event) []proxy.Event {
			return results(events, func(*proxy.FetchResult) bool { return true })
		}
		return d
	},
}

// TestNothingIsFoundWhereNothingIsPlanted shows that the findings are meaningful. If it fails,
// mutants may be found by chance, or because of their hooks.
func TestNothingIsFoundWhereNothingIsPlanted(t *testing.T) {
	h, err := newHunter(control)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	most := soon / 4
	if *full {
		most = within
	}
	f, err := h.hunt(firstSeed, most)
	if err != nil {
		t.Fatal(err)
	}
	if f != nil {
		t.Errorf("after %d schedules: %s: %s", f.schedules, f.by[0].Name, f.by[0].Evidence[0].Sentence)
	}
}
