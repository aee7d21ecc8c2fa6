package reports

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

var (
	clientsPage = newPage("clients/", "clients")
	clientsHead = newHead(nil, "matrix/matrix.css")
)

// clientsDocument is the input of the template.
type clientsDocument struct {
	ClientsTable
	head
	Paths []string
	JSON  string
}

// Row is a row of the table: the cells of each path, by client.
func (d clientsDocument) Row(operation string) [][]ClientCell {
	rows := make([][]ClientCell, len(d.Paths))
	for i, path := range d.Paths {
		for _, client := range d.Clients {
			rows[i] = append(rows[i], d.cell(operation, path, client))
		}
	}
	return rows
}

// Outcome is the outcome that gives a cell its colour.
func (c ClientCell) Outcome() invariant.Outcome {
	switch c.Did {
	case DidWork:
		return invariant.OutcomePass
	case DidNotWork:
		return invariant.OutcomeFail
	}
	return invariant.OutcomeInconclusive
}

// clientReason is one reason that several clients got.
type clientReason struct {
	Path, Operation string
	Clients         []string
	Did             Did
	Reason          string
}

// Reasons are the reasons of all cells that do not work, by path and operation. Equal reasons are
// merged.
func (t ClientsTable) Reasons() (all []clientReason) {
	for _, path := range ClientPaths {
		for _, o := range t.Operations {
			first := len(all)
			for _, client := range t.Clients {
				c := t.cell(o.Name, path, client)
				if c.Did == DidWork {
					continue
				}
				alike := func(r clientReason) bool { return r.Did == c.Did && r.Reason == c.Reason }
				if i := slices.IndexFunc(all[first:], alike); i >= 0 {
					all[first+i].Clients = append(all[first+i].Clients, client)
				} else {
					all = append(all, clientReason{path, o.Name, []string{client}, c.Did, c.Reason})
				}
			}
		}
	}
	return all
}

// WriteClientsHTML writes the table as one self-contained page without scripts, like [WriteHTML].
func WriteClientsHTML(w io.Writer, t ClientsTable) error {
	return writePage(w, clientsPage, clientsDocument{ClientsTable: t, head: clientsHead, Paths: ClientPaths, JSON: ClientsJSON})
}

// WriteClientsText writes the table for a terminal.
func WriteClientsText(w io.Writer, t ClientsTable, opts SummaryOptions) error {
	out := &terminal{SummaryOptions: opts}
	out.verdict(outcomes[t.Result], string(t.Result), t.Sentence)
	t.Metadata.summarize(out)
	fmt.Fprintf(out, "kubectl %s, through a server of %s beside one of %s; direct: at that of %s itself\n", plain(strings.Join(t.Clients, ", ")),
		plain(t.Metadata.From), plain(t.Metadata.To), plain(t.Metadata.To))
	out.WriteString("✓ works   ✗ does not   · not run   ↷ an older server cannot do it by itself\n\n")
	width, column := 0, max(11, 2*len(t.Clients)+2)
	for _, o := range t.Operations {
		width = max(width, len(o.Name))
	}
	fmt.Fprintf(out, "  %-*s   ", width, "operation")
	for _, path := range ClientPaths {
		fmt.Fprintf(out, "%-*s", column, path)
	}
	out.WriteString("\n")
	for _, o := range t.Operations {
		crosses := " "
		if o.Crosses {
			crosses = "↷"
		}
		fmt.Fprintf(out, "  %-*s %s ", width, plain(o.Name), crosses)
		for _, path := range ClientPaths {
			for _, client := range t.Clients {
				outcome := t.cell(o.Name, path, client).Outcome()
				out.WriteString(out.paint(outcome, mark(outcome)) + " ")
			}
			out.WriteString(strings.Repeat(" ", column-2*len(t.Clients)))
		}
		out.WriteString("\n")
	}
	for _, r := range t.Reasons() {
		fmt.Fprintf(out, "\n%s, %s, %s %s:\n  %s\n", plain(r.Path), plain(r.Operation), plain(strings.Join(r.Clients, ", ")), r.Did, plain(r.Reason))
	}
	return out.end(w, ClientsHTML, ClientsJSON)
}

const clientsIntroduction = `# What kubectl can do in a control plane of two versions

This page is written by ` + "`make clients PAGE=docs/clients.md`" + `. Server a runs %[2]s, servers b and c
run %[1]s. kubectl of several versions asks server b for things that b has and for things that only
a has. The paths are:

| path | leads to |
|---|---|
| direct | server a itself: it shows what kubectl can do at all |
| none | server b, its proxy switched off: the negative control |
| builtin | server b with the kube-apiserver's own Mixed Version Proxy |
| reference | server b behind the [reference proxy](proxy.md) |

kube-controller-manager of %[1]s runs as a client of server b. An operation works if kubectl has the
right exit code and prints the right thing and if, where it changes an object, server a has the
changed object afterwards. An operation that is marked with ↷ cannot be done by an older server
itself: without a proxy it must fail, or the result is inconclusive. An operation that fails at
server a itself does not count.

kubectl keeps what it reads of discovery for six hours. A stale discovery cache here is one that
kubectl made when all servers ran %[1]s. It must not hide what the upgrade has added: kubectl reads
discovery again if the cache does not have what it is asked for.

`

// WriteClientsPage writes the table as a page of the documentation. It has no date.
func WriteClientsPage(w io.Writer, t ClientsTable) error {
	var page strings.Builder
	fmt.Fprintf(&page, clientsIntroduction, t.Metadata.From, t.Metadata.To)
	fmt.Fprintf(&page, "Versions of kubectl: %s.\n%s.\n\n", strings.Join(t.Clients, ", "), strings.ReplaceAll(capital(t.Sentence), "; ", ";\n"))
	fmt.Fprintf(&page, "| operation | what has to come of it | %s |\n|---|---%s|\n", strings.Join(ClientPaths, " | "), strings.Repeat("|---", len(ClientPaths)))
	for _, o := range t.Operations {
		name := o.Name
		if o.Crosses {
			name += " ↷"
		}
		fmt.Fprintf(&page, "| %s | %s |", inTable(name), inTable(o.Sentence))
		for _, path := range ClientPaths {
			fmt.Fprintf(&page, " %s |", inTable(t.inWords(o.Name, path)))
		}
		page.WriteString("\n")
	}
	if reasons := t.Reasons(); len(reasons) > 0 {
		page.WriteString("\n## What kubectl says where something does not work\n\n| path | operation | kubectl | what it says |\n|---|---|---|---|\n")
		for _, r := range reasons {
			fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", r.Path, inTable(r.Operation), inTable(cmp.Or(t.all(r.Clients), strings.Join(r.Clients, ", "))), inTable(r.Reason))
		}
	}
	_, err := io.WriteString(w, page.String())
	return err
}

// all returns "all" if these are all clients of the table.
func (t ClientsTable) all(clients []string) string {
	if len(clients) == len(t.Clients) {
		return "all"
	}
	return ""
}

// inWords says for all clients whether an operation works on a path.
func (t ClientsTable) inWords(operation, path string) string {
	by := map[Did][]string{}
	for _, client := range t.Clients {
		did := t.cell(operation, path, client).Did
		by[did] = append(by[did], client)
	}
	var words []string
	for _, did := range []Did{DidWork, DidNotWork, DidNotRun} {
		switch {
		case len(by[did]) == 0:
		case t.all(by[did]) != "":
			return string(did)
		default:
			words = append(words, fmt.Sprintf("%s: %s", did, strings.Join(by[did], ", ")))
		}
	}
	return strings.Join(words, "; ")
}

// inTable escapes a text, so that it cannot end a cell of a Markdown table.
func inTable(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\\", `\\`, "`", "'").Replace(plain(s))
}

// SaveClientsPage writes the page of the documentation, whole or not at all.
func SaveClientsPage(path string, t ClientsTable) error {
	var page strings.Builder
	if err := WriteClientsPage(&page, t); err != nil {
		return err
	}
	return Write(path, []byte(page.String()))
}
