package mutants

import (
	"iter"
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/proxy"
	catalogued "github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/search"
)

// unmasked is the maximum number of schedules until a planted defect is seen in addition to
// upstream's own defects.
const unmasked = 400

// unmaskedFrom is the first of these schedules. From seed 1 on, the schedule of seed 499 happens to
// show upstream's own defects in a combination that no finding describes, so their kinds are NEW.
const unmaskedFrom = 10_001

// upstreamHides are the defects that cannot be seen with upstream's policy. Either upstream does
// not have the behaviour that they change, or it has the same defect itself.
var upstreamHides = map[string]string{
	"failed-fetch-is-empty":             "upstream does the same (finding 11)",
	"unknown-is-empty":                  "upstream, too, answers 404 for what only a peer serves that it has not asked yet (findings 1 and 6)",
	"body-spent":                        noSecondAttempt,
	"user-swapped-on-failover":          noSecondAttempt,
	"same-peer-again":                   noSecondAttempt,
	"half-a-fetch-wipes-the-other-half": "its 404s are those of finding 11: a signature does not say which of a peer's documents failed",
}

const noSecondAttempt = "upstream makes no second attempt (finding 3)"

// TestUpstreamsDefectsMaskNoOthers plants every defect in servers that follow upstream's policy.
// Upstream's known defects, above all finding 2, appear in nearly every schedule. A planted defect
// must be reported as NEW in spite of this. So no finding's predicate may be so wide that it also
// explains another defect.
func TestUpstreamsDefectsMaskNoOthers(t *testing.T) {
	released := search.Spec{Policy: "upstream-1.37", From: spec.From, To: spec.To, Servers: spec.Servers, Resources: spec.Resources}
	sound := newIn(t, released, mutant{}, 3*unmasked)
	var chosen []mutant
	for _, m := range catalogue() {
		if (m.plant != nil || m.setup != nil) && m.resources == 0 && !m.rare {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) < 30 {
		t.Fatalf("only %d defects can be planted", len(chosen))
	}
	masked := make([]bool, len(chosen))
	together(len(chosen), func(i int) {
		masked[i] = len(newIn(t, released, chosen[i], unmasked, sound...)) == 0
	})
	for i, m := range chosen {
		switch why := upstreamHides[m.name]; {
		case masked[i] && why == "":
			t.Errorf("%s is not reported as NEW within %d schedules. %s", m.name, unmasked, m.wrong)
		case !masked[i] && why != "":
			t.Errorf("%s is reported as NEW: it needs no exemption (%s)", m.name, why)
		}
	}
}

// restartedPeersServeNothing is a defect that looks like finding 24 at first: a server answers 404
// for a whole resource soon after the server that serves it has restarted. But this defect lasts.
var restartedPeersServeNothing = mutant{
	wrong: "The document of a peer that has restarted counts as empty.",
	plant: func(acted func()) sim.Defects {
		restarted := lives[map[proxy.ServerID]int]{}
		return sim.Defects{Local: restarted.begin, Events: func(self proxy.ServerID, events []proxy.Event) []proxy.Event {
			seen := restarted[self]
			if *seen == nil {
				*seen = map[proxy.ServerID]int{}
			}
			for _, e := range events {
				if e, ok := e.(proxy.PeerAppeared); ok {
					(*seen)[e.ID]++
				}
			}
			return results(events, func(r *proxy.FetchResult) bool {
				if (*seen)[r.ID] > 1 && r.Roots[proxy.RootGroups].Failed == "" {
					acted()
					r.Roots[proxy.RootGroups] = proxy.RootResult{}
				}
				return true
			})
		}}
	},
}

// TestLateKnowledgeMasksNoLostKnowledge plants a defect whose 404s come soon after a restart, while
// every server can be reached. If such a 404 comes later than the duration of the start, it must be
// NEW, because finding 24 is only about late knowledge.
func TestLateKnowledgeMasksNoLostKnowledge(t *testing.T) {
	released := search.Spec{Policy: "upstream-1.37", From: spec.From, To: spec.To, Servers: spec.Servers, Resources: spec.Resources}
	lost := func(s invariant.Signature) bool {
		undisturbed := s.Before == invariant.ObstacleNone && s.Obstacle == invariant.ObstacleNone && s.Elsewhere == invariant.ObstacleNone
		return s.Invariant == "NoFalseNotFound" && s.Mechanism == invariant.MechanismResource && undisturbed &&
			s.Change == invariant.ChangeCapable && s.Since == invariant.SinceRecent
	}
	const first = 1 // one schedule in about 150 shows it, but none of the 400 from unmaskedFrom on
	for s := range newSignatures(t, released, mutant{}, first, unmasked) {
		if lost(s) {
			t.Fatalf("without the defect, a 404 soon after a restart is NEW, too: %s", s)
		}
	}
	for s := range newSignatures(t, released, restartedPeersServeNothing, first, unmasked) {
		if lost(s) {
			return
		}
	}
	t.Errorf("no 404 soon after a restart is NEW within %d schedules. %s", unmasked, restartedPeersServeNothing.wrong)
}

// newIn runs schedules with a planted defect. It returns the kinds of violations that are NEW and
// not in beside. If beside is not empty, newIn stops at the first such kind.
func newIn(t *testing.T, of search.Spec, m mutant, schedules int, beside ...invariant.Signature) []invariant.Signature {
	t.Helper()
	var found []invariant.Signature
	for s := range newSignatures(t, of, m, unmaskedFrom, schedules) {
		if slices.Contains(found, s.Core()) || slices.Contains(beside, s.Core()) {
			continue
		}
		if found = append(found, s.Core()); len(beside) > 0 {
			break
		}
	}
	return found
}

// newSignatures runs schedules with a planted defect, from the seed first on. It yields the
// signatures of NEW violations, with their circumstances, in the order in which they are found.
func newSignatures(t *testing.T, of search.Spec, m mutant, first uint64, schedules int) iter.Seq[invariant.Signature] {
	return func(yield func(invariant.Signature) bool) {
		cases, err := search.NewGenerator(of)
		if err != nil {
			t.Fatal(err)
		}
		setup, err := of.Setup()
		if err != nil {
			t.Fatal(err)
		}
		if m.plant != nil {
			setup.Defects = m.plant(func() {})
		}
		if m.setup != nil {
			setup = m.setup(setup, func() {})
		}
		simulator := sim.New(setup)
		defer simulator.Close()
		known := catalogued.For(of.Policy)
		for seed := first; seed < first+uint64(schedules); seed++ {
			c, own := cases.Case(seed)
			result, err := simulator.Run(c, own, sim.Options{Run: history.Run{Bounds: search.Bounds}})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range invariant.Judge(result.History) {
				for _, e := range v.Evidence {
					if _, ok := known.Explain(e.Signature); !ok && !yield(e.Signature) {
						return
					}
				}
			}
		}
	}
}
