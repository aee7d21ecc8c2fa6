package invariant

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/golden"
)

// TestInvariantsPage holds docs/invariants.md to the catalogue.
func TestInvariantsPage(t *testing.T) {
	golden.Hold(t, "../../docs/invariants.md", invariantsPage())
}

func invariantsPage() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Invariants

All %d, as the catalogue in [internal/invariant](../internal/invariant) has them; this page is made from it. Every run is judged by all of
them, from its recorded history alone. *Core* is what KEP-4020 demands, or without which nothing works: it decides. *Extended* goes beyond
it: it is shown, and counts with `+"`--strict`"+`.

A verdict is a pass, a fail with the smallest evidence, or inconclusive with the reason: there was too little to judge, or what was true was
not known. Core ones that a [scenario](scenarios.md) is about must not stay inconclusive there, nor extended ones with `+"`--strict`"+`.

| invariant | | what must hold | source |
|---|---|---|---|
`, len(All()))
	for _, i := range All() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", i.Name, i.Grade, cell(i.Sentence), cell(i.Source))
	}
	return b.String()
}

// cell is a text in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
