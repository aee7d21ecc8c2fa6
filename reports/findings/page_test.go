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

These are the defects that skewproof has found in released kube-apiservers (subject ` + "`builtin`" + `),
and what else it has found to go wrong between their versions. Every finding was seen on real
processes, unless its page says otherwise. The pages are made from the files in
[reports/findings](../reports/findings). ` + "`skewproof finding NUMBER`" + ` shows a finding in a terminal.

A violation is **known** if one of these findings explains it. The run then names the number of the
finding. Every other violation is **NEW**. The file of a finding has a predicate that decides this
from the signature of a violation. A known violation of the KEP still makes a run fail. With
` + "`--known`" + ` (` + "`KNOWN=1`" + ` for make) only a NEW violation makes a run fail.

**Private first** marks a defect by which the input of a client crashes or hangs a server, or gets
past one of its security checks: it goes to security@kubernetes.io, and its page says in three
sentences what happens, in which versions, and how to avoid it, but not how to cause it.

If a run shows a NEW violation of this kind, send the directory of the run to
security@kubernetes.io. Send any other NEW violation to SIG API Machinery.

The **class** says where the cause is. Findings of the class **proxy** explain violations of
released kube-apiservers only: the same violation of another proxy is NEW. The other two classes
explain the violations of every subject, also of ` + "`reference`" + ` and ` + "`none`" + `, because no proxy can
prevent them. **Beside proxy** is a defect of kube-apiservers outside their proxy. **Version skew**
is no defect of one version: two versions store, permit or do different things, so that a control
plane that has both contradicts itself.

The KEP does not number its goals. This page calls them:

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
	for i, g := range Goals {
		end := ";"
		if i == len(Goals)-1 {
			end = "."
		}
		fmt.Fprintf(&b, "- **%s**: %s%s\n", g.Name, g.Demands, end)
	}
	b.WriteString("\nAny other entry in the column KEP-4020 names a section of the KEP.\n\n")
	b.WriteString("| # | finding | KEP-4020 | grade | class | disclosure |\n|---|---|---|---|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(&b, "| %d | [%s](findings/%s) | %s | %s | %s | %s |\n",
			f.Number, f.Title, pageName(t, f), strings.Join(f.Demands, ", "), f.Grade, f.Class, f.Disclosure)
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
	fmt.Fprintf(&b, "# Finding %d: %s\n", f.Number, f.Title)
	for _, s := range f.Sections() {
		b.WriteString("\n")
		if s.Title != "" {
			b.WriteString("## " + s.Title + "\n\n")
		}
		if s.Text != "" {
			b.WriteString(golden.Wrap(s.Text, "") + "\n")
		}
		if len(s.Rows) > 0 {
			b.WriteString("| | |\n|---|---|\n")
		}
		for _, r := range s.Rows {
			fmt.Fprintf(&b, "| %s | %s |\n", r.What, markdown(r))
		}
		for _, item := range s.List {
			b.WriteString(golden.Wrap("- "+item, "  ") + "\n")
		}
	}
	return b.String()
}

// markdown marks the words of a row.
func markdown(r Row) string {
	var out []string
	for _, w := range r.Words {
		switch r.Are {
		case Code:
			w = "`" + w + "`"
		case ScenarioName:
			w = fmt.Sprintf("[%s](../scenarios.md#%s)", w, w)
		case Prose, Demand:
		}
		out = append(out, w)
	}
	return strings.Join(out, ", ")
}
