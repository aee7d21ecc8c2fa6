package invariant

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/golden"
)

// TestInvariantsPage checks that docs/invariants.md is made from the catalogue.
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
	return b.String()
}

// cell escapes a text for a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
