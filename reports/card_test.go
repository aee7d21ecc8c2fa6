package reports

import (
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
)

// failing is an invariant with one kind of violation for each evidence.
func failing(name string, grade invariant.Grade, evidence ...Evidence) Invariant {
	evidence = slices.Clone(evidence)
	i := Invariant{Verdict: invariant.Verdict{Name: name, Grade: grade, Outcome: invariant.OutcomeFail}, Evidence: evidence}
	for n, e := range evidence {
		i.Evidence[n].Signature.Invariant = name
		i.Violations += e.Count
	}
	return i
}

// wholeResource is a violation whose first request has that ID.
func wholeResource(id, wrong string, change invariant.Change) Evidence {
	return Evidence{
		Signature: invariant.Signature{Mechanism: invariant.MechanismResource, Answer: "404 resource", Wrong: wrong, Change: change},
		New:       true, Count: 3, Requests: []Request{{ID: id, Server: "b"}}, FirstSeconds: 1, LastSeconds: 2, Servers: []string{"b"},
	}
}

func knownBy(finding int, e Evidence) Evidence {
	e.New, e.Known = false, &Known{Finding: finding, shownBy: finding}
	return e
}

// One defect is one card, even if it violates several invariants.
func TestOneCardForADefect(t *testing.T) {
	other := wholeResource("op-9", "", "")
	other.Signature.Answer = "401"
	for _, c := range []struct {
		name       string
		invariants []Invariant
		want       [][]string // the invariants of each card
	}{
		{
			"a finding that violates three invariants",
			[]Invariant{
				failing("X", invariant.GradeCore, knownBy(1, wholeResource("op-1", "", "")),
					knownBy(1, wholeResource("op-2", "", invariant.ChangeOther))),
				failing("Y", invariant.GradeCore, knownBy(1, wholeResource("op-3", "503 wanted", ""))),
				failing("Z", invariant.GradeExtended, knownBy(1, other)),
			},
			[][]string{{"X", "X", "Y", "Z"}},
		},
		{
			"two findings",
			[]Invariant{failing("X", invariant.GradeCore, knownBy(2, wholeResource("op-1", "", "")), knownBy(1, wholeResource("op-2", "", "")))},
			[][]string{{"X"}, {"X"}},
		},
		{
			"NEW, in other circumstances",
			[]Invariant{failing("X", invariant.GradeCore, wholeResource("op-1", "", ""), wholeResource("op-2", "", invariant.ChangeOther))},
			[][]string{{"X", "X"}},
		},
		{
			"NEW, and another answer",
			[]Invariant{failing("X", invariant.GradeCore, wholeResource("op-1", "", ""), other)},
			[][]string{{"X"}, {"X"}},
		},
		{
			"NEW, and two invariants about the same request",
			[]Invariant{
				failing("X", invariant.GradeCore, wholeResource("op-1", "its own words", "")),
				failing("Y", invariant.GradeCore, wholeResource("op-1", "other words", "")),
			},
			[][]string{{"X", "Y"}},
		},
		{
			"NEW, and what an invariant itself tells apart",
			[]Invariant{failing("X", invariant.GradeCore, wholeResource("op-1", "another order", ""), wholeResource("op-1", "other bytes", ""))},
			[][]string{{"X"}, {"X"}},
		},
		{
			"NEW, and two invariants about other requests",
			[]Invariant{
				failing("X", invariant.GradeCore, wholeResource("op-1", "its own words", "")),
				failing("Y", invariant.GradeCore, wholeResource("op-2", "other words", "")),
			},
			[][]string{{"X"}, {"Y"}},
		},
		{
			"a known one is not a NEW one",
			[]Invariant{failing("X", invariant.GradeCore, knownBy(1, wholeResource("op-1", "", "")), wholeResource("op-1", "", ""))},
			[][]string{{"X"}, {"X"}},
		},
		{
			"violations without a signature have nothing in common",
			[]Invariant{failing("X", invariant.GradeCore, Evidence{New: true}, Evidence{New: true})},
			[][]string{{"X"}, {"X"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got [][]string
			for _, card := range (RunReport{Invariants: c.invariants}).cards() {
				var names []string
				for _, item := range card.Items {
					names = append(names, item.Invariant.Name)
				}
				got = append(got, names)
			}
			if !slices.EqualFunc(got, c.want, slices.Equal) {
				t.Errorf("cards %v, want %v", got, c.want)
			}
		})
	}
}

// NEW violations come first. Known ones follow, those shown by the fewest scenarios first.
// Violations that do not count come last.
func TestCardsBeginWithWhatSaysMost(t *testing.T) {
	extended := wholeResource("op-1", "", "")
	extended.Signature.Mechanism = invariant.MechanismOpenAPI
	r := RunReport{Invariants: []Invariant{
		failing("E", invariant.GradeExtended, extended),
		failing("X", invariant.GradeCore, knownBy(7, wholeResource("op-2", "", "")), knownBy(2, wholeResource("op-3", "", "")),
			wholeResource("op-4", "", "")),
	}}
	var got []string
	for _, c := range r.cards() {
		got = append(got, c.Items[0].Requests[0].ID)
	}
	if want := []string{"op-4", "op-3", "op-2", "op-1"}; !slices.Equal(got, want) {
		t.Errorf("cards begin with %v, want %v", got, want)
	}
}

// A card counts the violations of each invariant, and shows each form of the defect once. Of two
// equal ones it shows the one with the difference of the documents.
func TestACardSaysTheSameOnce(t *testing.T) {
	merged := Evidence{Signature: invariant.Signature{Mechanism: invariant.MechanismDiscovery}, Count: 2, Requests: []Request{{ID: "op-5"}}}
	contrasted := merged
	contrasted.Difference = &invariant.Difference{OnlyRightTotal: 1}
	r := RunReport{Invariants: []Invariant{
		failing("X", invariant.GradeCore, knownBy(1, wholeResource("op-1", "", "")), knownBy(1, wholeResource("op-2", "", invariant.ChangeOther)),
			knownBy(1, merged)),
		failing("Y", invariant.GradeCore, knownBy(1, wholeResource("op-1", "", "")), knownBy(1, contrasted)),
	}}
	c := r.cards()[0]
	shown := c.exhibits()
	if len(shown) != 2 || shown[0].Requests[0].ID != "op-1" || shown[1].Difference == nil {
		t.Errorf("it shows %d kinds of violation, %+v", len(shown), shown)
	}
	tolls := r.tolls(c)
	if len(tolls) != 2 || tolls[0].Name != "X" || tolls[0].Count != 8 || tolls[1].Count != 5 {
		t.Errorf("it counts %+v", tolls)
	}
}

// A history in which every violation looks different gives a page of bounded size.
func TestCardsAreBounded(t *testing.T) {
	var all []Evidence
	for n := range 64 {
		e := wholeResource("op-1", "", "")
		e.Signature.Wrong = string(rune('A' + n))
		all = append(all, e)
	}
	i := failing("X", invariant.GradeCore, all...)
	i.Kinds = 70
	other := failing("Y", invariant.GradeCore, all...)
	for n := range other.Evidence {
		other.Evidence[n].Signature.Mechanism = invariant.MechanismWatch
	}
	v := newViolations(RunReport{Invariants: []Invariant{i, other}})
	if len(v.Cards) != mostCards || len(v.Listed) != mostDefects || v.Hidden != 2*64-mostCards-mostDefects+6 {
		t.Errorf("%d cards, %d listed, %d hidden", len(v.Cards), len(v.Listed), v.Hidden)
	}
}
