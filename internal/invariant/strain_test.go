package invariant

import (
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// late has direct questions wait.
func (s *story) late(from, to float64, servers ...string) *story {
	for _, name := range servers {
		s.h.Lates = append(s.h.Lates, history.Late{Server: name, Start: sec(from), End: sec(to)})
	}
	return s
}

// starved has a direct question wait while the server was not let run for so long.
func (s *story) starved(from, to float64, server string, queued float64) *story {
	s.h.Lates = append(s.h.Lates, history.Late{Server: server, Start: sec(from), End: sec(to), Queued: sec(queued)})
	return s
}

func TestStrain(t *testing.T) {
	const name = "NoFalseNotFound"
	wrong := func(at float64) *story { return tell(name).ask(20, "b", gadgets, 200).ask(at, "b", gadgets, 404) }
	excused := want{outcome: OutcomeInconclusive, checked: 1, unjudgeable: 1, reason: "did not keep up", fact: "not counted: 1"}
	fails := want{outcome: OutcomeFail, checked: 2, violations: 1}
	for _, c := range []storyCase{
		{"while every server lets a question wait", wrong(52).late(50, 55, "a", "b", "c"), excused},
		{"soon after", wrong(84).late(50, 55, "a", "b", "c"), excused},
		{"long after", wrong(86).late(50, 55, "a", "b", "c"), fails},
		{"long after the first and soon after the second", wrong(99).late(50, 55, "a", "b", "c").late(80, 85, "a", "b", "c"), excused},
		{"before", wrong(49).late(50, 55, "a", "b", "c"), fails},
		{"while one does not", wrong(52).late(50, 55, "a", "b"), fails},
		{"while one does that is not let run", wrong(52).starved(50, 54, "a", 2), excused},
		{"while one does that is let run", wrong(52).starved(50, 54, "a", 1.9), fails},
		{"while one is paused, and so does not run", wrong(52).pause("a", 45, 60).starved(50, 54, "a", 4), fails},
		{"while they do so one after the other", wrong(54).late(50, 52, "a").late(52, 54, "b").late(54, 56, "c"), fails},
		{"while one is paused and the others let questions wait", wrong(52).pause("c", 45, 60).late(50, 55, "a", "b"), excused},
		{"while all but one are paused", wrong(52).pause("c", 45, 60).pause("a", 45, 60).late(50, 55, "b"), fails},
		{"while a question waits for one that is paused", wrong(52).pause("c", 51, 60).late(50, 55, "a", "b", "c"), excused},
	} {
		t.Run(c.name, func(t *testing.T) { c.want.check(t, verdictOf(t, c.story.h, name)) })
	}
}

// What slowness cannot explain counts all the same.
func TestStrainExcusesNoLoop(t *testing.T) {
	s := tell("NoLoop").ask(20, "b", gadgets, 200).hop("b", 0, 10, false).hop("c", 1, 9, true).hop("a", 2, 8, true).late(15, 25, "a", "b", "c")
	want{outcome: OutcomeFail, checked: 1, violations: 1}.check(t, verdictOf(t, s.h, "NoLoop"))
}

// What was wrong and is not counted must keep the run from passing, also where that is not what the scenario is about.
func TestStrainKeepsARunFromPassing(t *testing.T) {
	of := func(s *story) Outcome { return Overall(Judge(s.h), false) }
	run := func() *story { return tell("NoCrash").askEvery(20, 29, "b", gadgets, 200).late(50, 55, "a", "b", "c") }
	if got := of(run()); got != OutcomePass {
		t.Errorf("a run in which nothing was wrong while the machine did not keep up: %s", got)
	}
	if got := of(run().ask(52, "b", gadgets, 404)); got != OutcomeInconclusive {
		t.Errorf("a run in which something was: %s", got)
	}
	for _, v := range Judge(run().ask(52, "b", gadgets, 404).h) {
		if v.Strained > 0 && !strings.Contains(v.Reason, "5s in total") {
			t.Errorf("%s does not say for how long: %s", v.Invariant, v.Reason)
		}
	}
}
