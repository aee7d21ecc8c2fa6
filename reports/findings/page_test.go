package findings

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/scenarios"
)

const pagesDir = "../../docs/findings"

// TestFindingsPages checks that docs/findings.md and the page of each finding are generated from
// the files, and that there is no other page.
func TestFindingsPages(t *testing.T) {
	golden.Hold(t, "../../docs/findings.md", index(t, All()))
	made := map[string]bool{}
	for _, f := range All() {
		made[pageName(t, f)] = true
		golden.Hold(t, filepath.Join(pagesDir, pageName(t, f)), page(f))
	}
	kept, err := os.ReadDir(pagesDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range kept {
		if !made[entry.Name()] {
			t.Errorf("%s/%s is the page of no finding: delete it", pagesDir, entry.Name())
		}
	}
}

// pageName is the name of a finding's page. It is the name of the finding's file, ending in .md.
func pageName(t *testing.T, f Finding) string {
	t.Helper()
	names, err := fs.Glob(files, fmt.Sprintf("%03d-*.yaml", f.Number))
	if err != nil || len(names) != 1 {
		t.Fatalf("finding %d: files %v, error %v; want one", f.Number, names, err)
	}
	return strings.TrimSuffix(names[0], ".yaml") + ".md"
}

const introduction = `# Findings

These are the defects that skewproof has found in released kube-apiservers (subject ` + "`builtin`" + `).
Every finding was seen on real processes, unless its page says otherwise. The pages are made from
the files in [reports/findings](../reports/findings).

A violation is **known** if one of these findings explains it. The run then names the number of the
finding. Every other violation is **NEW**. The file of a finding has a predicate that decides this
from the signature of a violation. [usage.md](usage.md#verdicts-and-exit-codes) says what that means
for the verdict on a run.

A finding is **public**, with a text that can be filed as an issue as it stands, unless a client can
use it to crash, hang or starve a server or to get past one of its security checks: such a finding
is **private first**, goes to <https://kubernetes.io/security>, and its page says what is wrong,
since when, and how to notice or avoid it, but not how to cause it.

If a run shows a NEW violation of that kind, do not publish its directory. Send any other NEW
violation to SIG API Machinery.

The KEP does not number its goals. This page calls them:

- **G1**: if an apiserver can serve a request, this apiserver handles it;
- **G2**: if this apiserver cannot be reached, the answer is 503, not 404;
- **G3**: discovery reports the same resources at every server;
- **G4**: clients can access everything that discovery lists.

Any other entry in the column KEP-4020 names a section of the KEP.

`

const pairs = `## By pair of versions

` + "`make matrix`" + ` runs ` + "`rolling-upgrade`" + `, ` + "`restart-during-partition`" + ` and ` + "`peer-crash`" + ` with three
servers. The table shows its results on real processes with ` + "`builtin`" + `. ` + "`reference`" + ` passes all of
these runs in every pair, and ` + "`none`" + ` fails them.

| pair | violated | findings |
|---|---|---|
| v1.30.14 without batch/v1 → v1.30.14 | DiscoveryDeterministic, DiscoveryComplete and Converges, because discovery is not merged; no false 404 | 19 |
| v1.34.4 → v1.35.4 (feature gate on) | NoFalseNotFound and DiscoveryAccessible, for the one subresource that v1.34.4 lacks; UnavailableOnPeerFailure in ` + "`restart-during-partition`" + `; DiscoveryDeterministic, DiscoveryComplete and Converges, because v1.34 does not merge discovery | 2 |
| v1.35.4 → v1.36.3 (feature gate on in v1.35) | only in ` + "`restart-during-partition`" + `: NoFalseNotFound and UnavailableOnPeerFailure, with a shorter partition than the scenario has now. With the present partition, the simulator adds DiscoveryDeterministic, DiscoveryComplete, DiscoveryAccessible and Converges. This pair was not run again on real processes | 1 |
| v1.36.3 → v1.37.1 | NoFalseNotFound and DiscoveryAccessible; in ` + "`peer-crash`" + ` Converges too; in ` + "`restart-during-partition`" + ` also UnavailableOnPeerFailure, DiscoveryDeterministic and DiscoveryComplete | 1, 2 |
| v1.34.4 → v1.37.1, an unsupported mix | the same as from v1.34.4 to v1.35.4, for 20 resources and subresources | 2, 8 |
`

func index(t *testing.T, all Catalogue) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(introduction)
	b.WriteString("| # | finding | KEP-4020 | grade | disclosure |\n|---|---|---|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(&b, "| %d | [%s](findings/%s) | %s | %s | %s |\n",
			f.Number, f.Title, pageName(t, f), strings.Join(f.Demands, ", "), f.Grade, f.Disclosure)
	}
	b.WriteString("\n## By scenario\n\nThe table lists the findings that each scenario shows with `builtin`, from v1.36.3 to v1.37.1. For\nthe scenarios with kube-controller-manager, the table has only the findings that they test;\n[controllers.md](controllers.md#what-was-seen) has the others.\n\n| scenario | findings |\n|---|---|\n")
	for _, s := range scenarios.All() {
		var numbers []string
		for _, f := range all {
			if slices.Contains(f.Scenarios, s.Name) {
				numbers = append(numbers, fmt.Sprintf("[%d](findings/%s)", f.Number, pageName(t, f)))
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", s.Name, strings.Join(numbers, ", "))
	}
	return b.String() + "\n" + pairs
}

func page(f Finding) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Finding %d: %s\n\n%s\n\n", f.Number, f.Title, golden.Wrap(f.Symptom, ""))
	var shown []string
	for _, name := range f.Scenarios {
		shown = append(shown, fmt.Sprintf("[%s](../scenarios.md#%s)", name, name))
	}
	b.WriteString("| | |\n|---|---|\n")
	for _, row := range []struct{ what, text string }{
		{"KEP-4020", strings.Join(f.Demands, ", ")},
		{"grade", string(f.Grade)},
		{"disclosure", string(f.Disclosure)},
		{"seen", f.Versions},
		{"command that shows it", code(f.Reproduce)},
		{"scenarios that show it", strings.Join(shown, ", ")},
		{"may be absent from a run", f.Chance},
		{"switches of the reference that remove it", code(f.Switches...)},
	} {
		if row.text != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", row.what, strings.Join(strings.Fields(row.text), " "))
		}
	}
	if f.Impact != "" {
		fmt.Fprintf(&b, "\n## Impact\n\n%s\n", golden.Wrap(f.Impact, ""))
	}
	if u := f.Upgrade; u != nil {
		b.WriteString("\n## In an upgrade\n\n| | |\n|---|---|\n")
		for _, row := range [][2]string{{"when", u.When}, {"deleted", u.Deleted}, {"hangs or stays behind", u.Hangs}, {"who notices", u.Noticed}, {"for how long", u.Lasts}} {
			fmt.Fprintf(&b, "| %s | %s |\n", row[0], strings.Join(strings.Fields(row[1]), " "))
		}
	}
	for _, part := range []struct{ title, text string }{{"Cause", f.Cause}, {"How it was confirmed", f.Confirmed}} {
		if part.text != "" {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", part.title, golden.Wrap(part.text, ""))
		}
	}
	if len(f.Upstream) > 0 {
		b.WriteString("\n## Upstream\n\n")
		for _, place := range f.Upstream {
			b.WriteString(golden.Wrap("- "+place, "  ") + "\n")
		}
	}
	return b.String()
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
