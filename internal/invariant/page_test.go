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

This page is made from the catalogue in [internal/invariant](../internal/invariant), which has %d invariants. Every run is judged by all of
them, from its recorded history alone. *Core* invariants are what KEP-4020 or every use of a control plane demands; they decide. *Extended*
ones demand more; they are shown, and count only with `+"`--strict`"+`.

A verdict is a pass, a fail with the smallest evidence, or inconclusive with the reason: too little was judged, or the ground truth is
unknown. Core invariants that a [scenario](scenarios.md) tests must not stay inconclusive in it; with `+"`--strict`"+`, neither must extended
ones.

Some words have a fixed meaning. *Steady state* is a time in which nothing changes, no fault is on, all apiservers are ready, and each has had
the time to learn about the others. A *disturbance* is a change of the cluster or a fault. A request is *passed on* if the apiserver that a
client asks forwards it to another one.

| invariant | | what must hold | source |
|---|---|---|---|
`, len(All()))
	for _, i := range All() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", i.Name, i.Grade, cell(i.Sentence), cell(i.Source))
	}
	fmt.Fprintf(&b, `
## No answer goes unruled

Each verdict tells which of the requests that had to be passed on it did not rule on: by class (what was asked), answer and reason. Some
reasons excuse that: the server was not ready, the load canceled the request, a fault of the run was in the way, or knowledge was still
allowed to spread. Where nothing excuses it, the report counts the requests on which *no* invariant rules. If they are at least %d %% of
the requests of a class, and at least %d, NoFalseNotFound does not pass, and neither does the run, whatever the scenario tests. A request
that was answered while every capable server was out of reach contradicts the ground truth: no ruling on it counts.

## Pressure

A scenario demands a number of requests of each class that it is about. If there were fewer, the verdict of an invariant that needs the
class is inconclusive. A request is *skewed* if the asked apiserver does not serve the resource itself while another live one does.

| class | needed by |
|---|---|
`, mostUnruled, leastUnruled)
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
