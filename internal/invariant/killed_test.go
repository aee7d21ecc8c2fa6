package invariant

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// For clients and peers, a killed server and a crashed server are the same, because neither
// announces its end. Only NoCrash distinguishes them, because it rules on the server itself.
func TestKilledAndCrashedServersAreJudgedAlike(t *testing.T) {
	swap := map[history.State]history.State{history.StateKilled: history.StateCrashed, history.StateCrashed: history.StateKilled}
	told := func(h *history.History) map[string]string {
		all := map[string]string{}
		for _, v := range Judge(h) {
			if v.Name != "NoCrash" {
				var signatures []Signature
				for _, e := range v.Evidence {
					signatures = append(signatures, e.Signature)
				}
				all[v.Name] = fmt.Sprint(signatures) + fmt.Sprintf(" %s of %d with %d violations, %d unjudgeable, %d unruled", v.Outcome, v.Checked, v.Violations, v.Unjudgeable, v.Unruled)
			}
		}
		return all
	}
	histories := map[string]*history.History{}
	for name, s := range map[string]*story{
		"a 404 for what the lost server alone served": tell(names()...).kill("a", 50).askEvery(60, 90, "b", gadgets, 404),
		"a 503 for it": tell(names()...).kill("a", 50).askEvery(60, 90, "b", gadgets, 503),
		"a 503 for what a server serves that is lost":  tell(names()...).kill("c", 50).askEvery(51, 90, "b", gadgets, 503),
		"merged discovery without the lost server":     tell(names()...).kill("a", 50).discover(52, "b", "/apis", mergedDoc).discover(120, "b", "/apis", doc("poor", line(widgets))),
		"one of two servers of a resource is lost":     tell(names()...).kill("b", 50).ask(50.1, "c", widgets, 503).ask(80, "c", widgets, 404),
		"answers that wait for a server that is lost":  tell(names()...).kill("a", 50).ask(49, "b", gadgets, 503, took(20)),
		"the lost server returns":                      tell(names()...).kill("a", 50).start("a", 80, mergedDoc).askEvery(82, 120, "b", gadgets, 404),
		"a request that the lost server was answering": tell(names()...).ask(49, "a", widgets, 0, took(2), failed(history.FailureReset)).kill("a", 50),
	} {
		histories[name] = s.h
	}
	for seed := range uint64(60) {
		histories[fmt.Sprintf("chaos %d", seed)] = chaos(rand.New(rand.NewPCG(seed, 7)))
	}
	swapped, different := 0, 0
	for name, h := range histories {
		other := *h
		other.Lifecycle = slices.Clone(h.Lifecycle)
		before := swapped
		for i, l := range other.Lifecycle {
			if now, ok := swap[l.State]; ok {
				other.Lifecycle[i].State = now
				swapped++
			}
		}
		want, got := told(h), told(&other)
		for invariant := range want {
			if got[invariant] != want[invariant] {
				t.Errorf("%s: %s: %s with the recorded ends, %s with killed and crashed exchanged", name, invariant, want[invariant], got[invariant])
			}
		}
		if swapped > before {
			stopped := *h
			stopped.Lifecycle = slices.Clone(h.Lifecycle)
			for i, l := range stopped.Lifecycle {
				if _, ok := swap[l.State]; ok {
					stopped.Lifecycle[i].State = history.StateStopped
				}
			}
			if fmt.Sprint(told(&stopped)) != fmt.Sprint(want) {
				different++
			}
		}
	}
	if swapped < 20 || different < 3 {
		t.Errorf("%d ends were exchanged, and in %d histories a stop is judged otherwise: this does not show that ends matter", swapped, different)
	}
}
