package invariant

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/golden"
)

// TestInvariantsPage checks that docs/invariants.md is generated from the catalogue.
func TestInvariantsPage(t *testing.T) {
	golden.Hold(t, "../../docs/invariants.md", invariantsPage())
}

func invariantsPage() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Invariants

This page is made from the catalogue in [internal/invariant](../internal/invariant), which has %d
invariants. All of them judge every run, from its recorded history alone. *Core* invariants are what
KEP-4020 or every use of a control plane demands; they decide the result of a run. *Extended*
invariants demand more. A report shows them, but they count only with `+"`--strict`"+`.
`+"`skewproof explain NAME`"+` explains an invariant in a terminal.

A verdict is a pass, a fail with the smallest evidence, or inconclusive with the reason. An
invariant is inconclusive if it judged too little, or if the ground truth is unknown. If a
[scenario](scenarios.md) tests a core invariant and this invariant is inconclusive, the run does not
pass; with `+"`--strict`"+`, the same is true of extended invariants.

Some words have a fixed meaning. *Steady state* is a time in which nothing changes, no fault is on,
all apiservers are ready, and each of them has had the time to learn about the others. A
*disturbance* is a change of the cluster or a fault. A request is *passed on* if the asked apiserver
forwards it to another one.

| invariant | | what must hold | source |
|---|---|---|---|
`, len(All()))
	for _, i := range All() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", i.Name, i.Grade, cell(i.Sentence), cell(i.Source))
	}
	unruled := golden.Wrap(fmt.Sprintf("Each verdict lists the requests that had to be passed on and that the invariant did not rule on, by "+
		"class (what was requested), answer and reason. Some reasons are excuses: %s. The report counts the requests without an excuse on "+
		"which *no* invariant rules. If these are at least %d %% of the requests of a class, and at least %d requests, neither "+
		"NoFalseNotFound nor the run passes, whatever the scenario tests. If a request was answered while every capable server was out of "+
		"reach, the ground truth must be wrong, so no ruling on this request counts.", Excuses, mostUnruled, leastUnruled), "")
	fmt.Fprintf(&b, `
## No answer goes unruled

%s

## Pressure

A scenario demands a number of requests of each class that it tests. If there were fewer, every
invariant that needs this class is inconclusive. A request is *skewed* if the asked apiserver does
not serve the resource itself while another live one does.

| class | needed by |
|---|---|
`, unruled)
	for _, p := range pressures {
		var by []string
		for _, i := range All() {
			if slices.ContainsFunc(i.pressure, func(q pressure) bool { return q.what == p.what }) {
				by = append(by, i.Name)
			}
		}
		if p.what == operations.what {
			by = []string{"all"}
		}
		fmt.Fprintf(&b, "| %s | %s |\n", p.what, strings.Join(by, ", "))
	}
	return b.String()
}

// cell escapes a text for a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
