package findings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/scenarios"
)

// TestFindingsPage checks that docs/findings.md is made from the files.
func TestFindingsPage(t *testing.T) {
	golden.Hold(t, "../../docs/findings.md", page(All()))
}

const introduction = `# Findings

This page is made from the files in [reports/findings](../reports/findings). They say what skewproof
has found in released kube-apiservers (subject ` + "`builtin`" + `), and how to see it. Every finding was
seen on real processes, unless it says otherwise.

A run says of each violation whether one of these findings explains it: **known (finding N)** or
**NEW**. The file of a finding has a predicate over the signature of a violation. Known is no excuse:
a run that violates the KEP fails. With ` + "`--known`" + ` (` + "`KNOWN=1`" + ` for make) only what is NEW fails.

**Private first** marks a finding by one criterion: against the KEP, a server answers 404 for whole
resources that a live server serves, or leaves them out of aggregated discovery, and not because of
what the client itself sent, so that controllers may delete or leak objects; or a client can harm
the control plane. Such a finding goes to security@kubernetes.io, and is cleared there, before this
page and the scenarios that show it are published. The same causes stand in
[policies.md](policies.md), [ablation.md](ablation.md), [scenarios.md](scenarios.md),
[parity.md](parity.md), [kind.md](kind.md), the picture in the README, ` + "`sim/parity/known.json`" + `,
` + "`internal/e2e`" + ` and comments: they are held back with this page.

The KEP does not number its goals. Here they are **G1**: an apiserver that can serve a request handles
it, if there is one. **G2**: if that apiserver cannot be reached, the answer is 503, not 404. **G3**:
discovery reports the same resources whichever server is asked. **G4**: everything that discovery
lists can be accessed. Any other demand names a section of the KEP.

`

const pairs = `## By pair of versions

This is what ` + "`make matrix`" + ` shows on real processes with ` + "`builtin`" + `: ` + "`rolling-upgrade`" + `,
` + "`restart-during-partition`" + ` and ` + "`peer-crash`" + `, three servers. ` + "`reference`" + ` passes all of these runs, in
every pair, and ` + "`none`" + ` fails them.

| pair | violated | findings |
|---|---|---|
| v1.30.14 without batch/v1 → v1.30.14 | DiscoveryDeterministic, DiscoveryComplete and Converges, because discovery is not merged; no false 404 | 19 |
| v1.34.4 → v1.35.4 (feature gate on) | NoFalseNotFound and DiscoveryAccessible, for the one subresource that v1.34.4 lacks; UnavailableOnPeerFailure in ` + "`restart-during-partition`" + `; DiscoveryDeterministic, DiscoveryComplete and Converges, because v1.34 does not merge discovery | 2 |
| v1.35.4 → v1.36.3 (feature gate on in v1.35) | in ` + "`restart-during-partition`" + ` alone: NoFalseNotFound and UnavailableOnPeerFailure, when that partition ended sooner than it does now. With the longer one the simulator adds DiscoveryDeterministic, DiscoveryComplete, DiscoveryAccessible and Converges; real processes have not been run again with this pair | 1 |
| v1.36.3 → v1.37.1 | NoFalseNotFound and DiscoveryAccessible; in ` + "`peer-crash`" + ` Converges too; in ` + "`restart-during-partition`" + ` also UnavailableOnPeerFailure, DiscoveryDeterministic and DiscoveryComplete | 1, 2 |
| v1.34.4 → v1.37.1, mixed by mistake | as from v1.34.4 to v1.35.4, for 20 resources and subresources | 2, 8 |
`

func page(all Catalogue) string {
	var b strings.Builder
	b.WriteString(introduction)
	b.WriteString("| # | finding | KEP-4020 | grade | disclosure |\n|---|---|---|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(&b, "| %d | [%s](#finding-%d) | %s | %s | %s |\n", f.Number, f.Title, f.Number, strings.Join(f.Demands, ", "), f.Grade, f.Disclosure)
	}
	b.WriteString("\n## By scenario\n\nWhich findings each scenario shows with `builtin`, from v1.36.3 to v1.37.1.\n\n| scenario | findings |\n|---|---|\n")
	for _, s := range scenarios.All() {
		var numbers []string
		for _, f := range all {
			if slices.Contains(f.Scenarios, s.Name) {
				numbers = append(numbers, strconv.Itoa(f.Number))
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", s.Name, strings.Join(numbers, ", "))
	}
	b.WriteString("\n" + pairs)
	for _, f := range all {
		section(&b, f)
	}
	return b.String()
}

func section(b *strings.Builder, f Finding) {
	fmt.Fprintf(b, "\n## Finding %d\n\n**%s.** %s\n", f.Number, strings.TrimSuffix(f.Title, "."), wrapped(f.Symptom, len(f.Title)+6))
	if f.Impact != "" {
		fmt.Fprintf(b, "\n%s\n", wrapped("*Impact.* "+f.Impact, 0))
	}
	if f.Cause != "" {
		fmt.Fprintf(b, "\n%s\n", wrapped("*Cause.* "+f.Cause, 0))
	}
	b.WriteString("\n")
	for _, row := range []struct{ what, text string }{
		{"Seen", f.Versions},
		{"Reproduce", code(f.Reproduce)},
		{"Switches of the reference that remove it", code(f.Switches...)},
		{"Confirmed", f.Confirmed},
		{"Upstream", strings.Join(f.Upstream, "; ")},
	} {
		if row.text != "" {
			fmt.Fprintf(b, "%s\n", strings.ReplaceAll(wrapped("- "+row.what+": "+row.text, 0), "\n", "\n  "))
		}
	}
}

func code(words ...string) string {
	var out []string
	for _, w := range words {
		if w != "" {
			out = append(out, "`"+w+"`")
		}
	}
	return strings.Join(out, ", ")
}

// wrapped breaks a text into lines of at most 98 columns; the first has so many less.
func wrapped(text string, less int) string {
	var b strings.Builder
	column := less
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case column+1+n > 98:
			b.WriteString("\n")
			column = 0
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
