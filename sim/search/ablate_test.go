package search

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/reports"
)

// False 404s depend on the switch that keeps what was learnt. The policies differ in two switches
// only, so that the test is quick.
func TestAblationFindsWhatKeepsKnowledge(t *testing.T) {
	spec := specOf("reference", 3)
	spec.Resources, spec.Changes = 2, []string{"Knowledge.KeepLastGood=false", "Knowledge.FailClosed=false"}
	begun := 0
	ablation, err := Ablate(spec, "reference", Options{First: 1001, Seeds: 80})
	if err != nil {
		t.Fatal(err)
	}
	a, err := ablation.Run(t.Context(), func(string, int, int) { begun++ })
	if err != nil {
		t.Fatal(err)
	}
	if !a.Complete || len(a.Rows) != len(ablation.there) || begun != 2+2*len(ablation.there) {
		t.Fatalf("%d rows of %d, complete %t, %d policies begun", len(a.Rows), len(ablation.there), a.Complete, begun)
	}
	column := slices.IndexFunc(a.Columns, func(c reports.AblationColumn) bool {
		return c.Invariant == "NoFalseNotFound" && c.Asked == reports.PlainRequest
	})
	if column < 0 {
		t.Fatalf("no false 404 was found: %+v", a.Columns)
	}
	row := slices.IndexFunc(a.Rows, func(r reports.AblationRow) bool { return r.Switch == "Knowledge.KeepLastGood" })
	if row < 0 {
		t.Fatal("KeepLastGood is not among the switches")
	}
	keep := a.Rows[row]
	if keep.FromValue != "false" || keep.ToValue != "true" {
		t.Errorf("it goes from %s to %s", keep.FromValue, keep.ToValue)
	}
	if keep.With[column] >= a.FromCounts[column] {
		t.Errorf("without both it is violated in %d schedules, with KeepLastGood in %d", a.FromCounts[column], keep.With[column])
	}
	closed := a.Rows[slices.IndexFunc(a.Rows, func(r reports.AblationRow) bool { return r.Switch == "Knowledge.FailClosed" })]
	if closed.Without[column] <= a.ToCounts[column] {
		t.Errorf("the reference violates it in %d schedules, without FailClosed in %d", a.ToCounts[column], closed.Without[column])
	}
	var text bytes.Buffer
	if err := reports.WriteTables(&text, a, reports.SummaryOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Knowledge.KeepLastGood=true", "Knowledge.KeepLastGood=false",
		"NoFalseNotFound: Knowledge.KeepLastGood=true alone, in reference, Knowledge.KeepLastGood=false, Knowledge.FailClosed=false, removes",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text.String()), " "), want) { // lines are wrapped
			t.Errorf("it does not say %q:\n%s", want, &text)
		}
	}
}

// An ablation that was cut short has run fewer schedules than its title says, so it must give no
// table.
func TestWhatAnAblationWasEndedInIsLeftOut(t *testing.T) {
	for _, begun := range []int{0, 1, 2, 5} { // cut short at either policy, at the first switch, and at the second
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		spec := specOf("upstream-1.37", 3)
		spec.Resources = 2
		ablation, err := Ablate(spec, "reference", Options{Seeds: 10})
		if err != nil {
			t.Fatal(err)
		}
		a, err := ablation.Run(ctx, func(_ string, done, _ int) {
			if done == begun {
				cancel()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if rows := max(begun-2, 0) / 2; a.Complete || a.Switches != len(ablation.there) || len(a.Rows) != rows || (len(a.Columns) > 0) != (begun > 1) {
			t.Errorf("ended at policy %d: complete %t, %d rows of %d, %d columns; want %d of %d", begun+1, a.Complete, len(a.Rows), a.Switches, len(a.Columns), rows, len(ablation.there))
		}
	}
}

func TestWhatCannotBeComparedIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string
		o        Options
	}{
		"the same": {"reference", "reference", Options{Seeds: 1}}, "none": {None, "reference", Options{Seeds: 1}}, "unknown": {"reference", "mine", Options{Seeds: 1}},
		"no seeds": {"upstream-1.37", "reference", Options{}},
	} {
		if _, err := Ablate(specOf(c.from, 3), c.to, c.o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
