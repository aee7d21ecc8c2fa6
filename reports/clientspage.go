package reports

import (
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

// Of are the operations of a program.
func (d clientsDocument) Of(c ClientProgram) []ClientOperation { return d.of(c.Name) }

// Row is a row of the table: the cells of each path, by version of the operation's program.
func (d clientsDocument) Row(o ClientOperation) [][]ClientCell {
	rows := make([][]ClientCell, len(d.Paths))
	for i, path := range d.Paths {
		for _, version := range d.versions(o) {
			rows[i] = append(rows[i], d.cell(o.Name, path, version))
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

// clientReason is one answer that several versions of a client got.
type clientReason struct {
	Path, Program, Operation string
	Clients                  []string
	Did                      Did
	Reason                   string
	// All is true if these are all versions of the program.
	All bool
}

// Versions are the versions in words.
func (r clientReason) Versions() string {
	if r.All {
		return "all"
	}
	return strings.Join(r.Clients, ", ")
}

// Reasons are the reasons of all cells that do not work, by path and operation. Equal reasons are
// merged.
func (t ClientsTable) Reasons() (all []clientReason) {
	for _, path := range ClientPaths {
		for _, o := range t.Operations {
			first := len(all)
			for _, client := range t.versions(o) {
				c := t.cell(o.Name, path, client)
				if c.Did == DidWork {
					continue
				}
				alike := func(r clientReason) bool { return r.Did == c.Did && r.Reason == c.Reason }
				if i := slices.IndexFunc(all[first:], alike); i >= 0 {
					all[first+i].Clients = append(all[first+i].Clients, client)
				} else {
					all = append(all, clientReason{path, o.Program, o.Name, []string{client}, c.Did, c.Reason, false})
				}
			}
			for i := range all[first:] {
				all[first+i].All = len(all[first+i].Clients) == len(t.versions(o))
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
	out.verdict(t.Result.Outcome(), t.Sentence)
	t.Metadata.summarize(out)
	fmt.Fprintf(out, "through a server of %s beside one of %s; direct: at that of %s itself\n", plain(t.Metadata.From), plain(t.Metadata.To),
		plain(t.Metadata.To))
	for _, left := range t.Metadata.LeftOut {
		fmt.Fprintf(out, "left out: %s\n", plain(left))
	}
	out.WriteString("✓ works   ✗ does not   · not run   ↷ an older server cannot carry it out by itself\n")
	for _, c := range t.Clients {
		t.writeProgram(out, c)
	}
	for _, r := range t.Reasons() {
		fmt.Fprintf(out, "\n%s, %s, %s %s %s:\n  %s\n", plain(r.Path), plain(r.Operation), plain(r.Program), plain(strings.Join(r.Clients, ", ")),
			r.Did, plain(r.Reason))
	}
	return out.end(w, ClientsHTML, ClientsJSON)
}

// writeProgram writes the operations of one program for a terminal.
func (t ClientsTable) writeProgram(out *terminal, c ClientProgram) {
	width, column := len("operation"), max(11, 2*len(c.Versions)+2)
	for _, o := range t.of(c.Name) {
		width = max(width, len(o.Name))
	}
	fmt.Fprintf(out, "\n%s %s\n  %-*s   ", plain(c.Name), plain(strings.Join(c.Versions, ", ")), width, "operation")
	for _, path := range ClientPaths {
		fmt.Fprintf(out, "%-*s", column, path)
	}
	out.WriteString("\n")
	for _, o := range t.of(c.Name) {
		crosses := " "
		if o.Crosses {
			crosses = "↷"
		}
		fmt.Fprintf(out, "  %-*s %s ", width, plain(o.Name), crosses)
		for _, path := range ClientPaths {
			for _, version := range c.Versions {
				outcome := t.cell(o.Name, path, version).Outcome()
				out.WriteString(out.paint(outcome, mark(outcome)) + " ")
			}
			out.WriteString(strings.Repeat(" ", column-2*len(c.Versions)))
		}
		out.WriteString("\n")
	}
}

const clientsIntroduction = `# What clients can do in a control plane of two versions

` + "`make clients PAGE=docs/clients.md`" + ` writes this page. Server a runs %[2]s, servers b and c run
%[1]s. kubectl in several versions, and programs with a client library, ask server b for
resources that b serves and for resources that only a serves. The paths are:

| path | leads to |
|---|---|
| direct | server a itself; shows which operations can work at all |
| none | server b with its proxy off; the negative control |
| builtin | server b with the kube-apiserver's own Mixed Version Proxy |
| reference | server b with the [reference proxy](proxy.md) |

kube-controller-manager of %[1]s runs as a client of server b. An operation works if the client's
exit code and output are right. If the operation changes an object, server a must also have the
changed object afterwards. An older server cannot carry out an operation with the mark ↷ by itself.
Without a proxy such an operation must fail; otherwise the result is inconclusive. An operation that
fails at server a itself does not count.

kubectl keeps discovery documents for six hours. In some operations it has a stale discovery
cache, from a time when all servers ran %[1]s. This cache must not hide the resources that the
upgrade has added, because kubectl reads discovery again if the cache lacks the requested resource.

client-go, controller-runtime and client-node (the JavaScript client, @kubernetes/client-node) are
libraries. skewproof builds a small program of its own with each of their versions
([source](../internal/libraries/_programs)), from the Go modules and from the npm registry. The
program for controller-runtime runs a manager with a cache and one controller. The program for
client-node needs Node.js and npm; without them it is left out. Version 2 of client-node needs
Node.js 22.

`

// clientsNotRun ends the introduction.
const clientsNotRun = `The Python and Java clients were not run, because the machine that makes this page cannot reach
their registries (PyPI and Maven Central).

`

// WriteClientsPage writes the table as a page of the documentation. It has no date.
func WriteClientsPage(w io.Writer, t ClientsTable) error {
	var page strings.Builder
	fmt.Fprintf(&page, clientsIntroduction, inTable(t.Metadata.From), inTable(t.Metadata.To))
	page.WriteString(clientsNotRun)
	for _, left := range t.Metadata.LeftOut {
		fmt.Fprintf(&page, "Left out: %s.\n\n", inTable(left))
	}
	fmt.Fprintf(&page, "%s.\n", strings.ReplaceAll(capital(inTable(t.Sentence)), "; ", ";\n"))
	for _, c := range t.Clients {
		fmt.Fprintf(&page, "\n## %s\n\nVersions: %s.\n\n| operation | result that must be true | %s |\n|---|---%s|\n", inTable(c.Name),
			inTable(strings.Join(c.Versions, ", ")),
			strings.Join(ClientPaths, " | "), strings.Repeat("|---", len(ClientPaths)))
		for _, o := range t.of(c.Name) {
			name := o.Name
			if o.Crosses {
				name += " ↷"
			}
			fmt.Fprintf(&page, "| %s | %s |", inTable(name), inTable(o.Sentence))
			for _, path := range ClientPaths {
				fmt.Fprintf(&page, " %s |", inTable(t.inWords(o, path)))
			}
			page.WriteString("\n")
		}
	}
	if reasons := t.Reasons(); len(reasons) > 0 {
		page.WriteString("\n## Messages of clients whose operations do not work\n\n| path | client | operation | versions | message |\n|---|---|---|---|---|\n")
		for _, r := range reasons {
			fmt.Fprintf(&page, "| %s | %s | %s | %s | %s |\n", inTable(r.Path), inTable(r.Program), inTable(r.Operation), inTable(r.Versions()),
				inTable(r.Reason))
		}
	}
	_, err := io.WriteString(w, page.String())
	return err
}

// inWords describes the results of an operation on a path, for all versions of its program.
func (t ClientsTable) inWords(o ClientOperation, path string) string {
	by := map[Did][]string{}
	versions := t.versions(o)
	for _, version := range versions {
		did := t.cell(o.Name, path, version).Did
		by[did] = append(by[did], version)
	}
	var words []string
	for _, did := range []Did{DidWork, DidNotWork, DidNotRun} {
		switch len(by[did]) {
		case 0:
		case len(versions):
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
