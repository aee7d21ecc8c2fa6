package invariant

import (
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// slow makes probes slow.
func (s *story) slow(from, to float64, servers ...string) *story {
	for _, name := range servers {
		s.h.SlowProbes = append(s.h.SlowProbes, history.SlowProbe{Server: name, Start: sec(from), End: sec(to)})
	}
	return s
}

// starved makes a probe slow. During the probe, threads of the server waited for a CPU for queued
// seconds.
func (s *story) starved(from, to float64, server string, queued float64) *story {
	s.h.SlowProbes = append(s.h.SlowProbes, history.SlowProbe{Server: server, Start: sec(from), End: sec(to), Queued: sec(queued)})
	return s
}

func TestOverload(t *testing.T) {
	const name = "NoFalseNotFound"
	wrong := func(at float64) *story { return tell(name).ask(20, "b", gadgets, 200).ask(at, "b", gadgets, 404) }
	unjudged := want{outcome: OutcomeInconclusive, checked: 1, unjudgeable: 1, reason: "was overloaded", fact: "not counted: 1"}
	fails := want{outcome: OutcomeFail, checked: 2, violations: 1}
	for _, c := range []storyCase{
		{"while the probes of every server are slow", wrong(52).slow(50, 55, "a", "b", "c"), unjudged},
		{"soon after", wrong(84).slow(50, 55, "a", "b", "c"), unjudged},
		{"long after", wrong(86).slow(50, 55, "a", "b", "c"), fails},
		{"long after the first and soon after the second", wrong(99).slow(50, 55, "a", "b", "c").slow(80, 85, "a", "b", "c"), unjudged},
		{"before", wrong(49).slow(50, 55, "a", "b", "c"), fails},
		{"while the probes of one server are not slow", wrong(52).slow(50, 55, "a", "b"), fails},
		{"while only one is slow, which gets no CPU", wrong(52).starved(50, 54, "a", 2), unjudged},
		{"while only one is slow, which gets a CPU", wrong(52).starved(50, 54, "a", 1.9), fails},
		{"while only one is slow, which is paused", wrong(52).pause("a", 45, 60).starved(50, 54, "a", 4), fails},
		{"while they are slow one after the other", wrong(54).slow(50, 52, "a").slow(52, 54, "b").slow(54, 56, "c"), fails},
		{"while one is paused and the others are slow", wrong(52).pause("c", 45, 60).slow(50, 55, "a", "b"), unjudged},
		{"while all but one are paused", wrong(52).pause("c", 45, 60).pause("a", 45, 60).slow(50, 55, "b"), fails},
		{"while all are slow, one of them because it is paused", wrong(52).pause("c", 51, 60).slow(50, 55, "a", "b", "c"), unjudged},
	} {
		t.Run(c.name, func(t *testing.T) { c.want.check(t, verdictOf(t, c.story.h, name)) })
	}
}

// Violations that slowness cannot explain still count.
func TestOverloadDoesNotExcuseALoop(t *testing.T) {
	s := tell("NoLoop").ask(20, "b", gadgets, 200).hop("b", 0, 10, false).hop("c", 1, 9, true).hop("a", 2, 8, true).slow(15, 25, "a", "b", "c")
	want{outcome: OutcomeFail, checked: 1, violations: 1}.check(t, verdictOf(t, s.h, "NoLoop"))
}

// Wrong answers that an overload hides must keep the run from passing, even if the scenario tests
// another invariant.
func TestOverloadKeepsARunFromPassing(t *testing.T) {
	of := func(s *story) Outcome { return Overall(Judge(s.h), false, nil).Outcome() }
	run := func() *story { return tell("NoCrash").askEvery(20, 29, "b", gadgets, 200).slow(50, 55, "a", "b", "c") }
	if got := of(run()); got != OutcomePass {
		t.Errorf("a run without wrong answers on an overloaded machine: %s", got)
	}
	if got := of(run().ask(52, "b", gadgets, 404)); got != OutcomeInconclusive {
		t.Errorf("a run with a wrong answer on an overloaded machine: %s", got)
	}
	for _, v := range Judge(run().ask(52, "b", gadgets, 404).h) {
		if v.Overloaded > 0 && !strings.Contains(v.Reason, "5s in total") {
			t.Errorf("the reason of %s does not say for how long the machine was overloaded: %s", v.Name, v.Reason)
		}
	}
}
