package reports

import (
	"fmt"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// page has a table for each program, and what its clients say where an operation does not work.
func (t ClientsTable) page() page {
	m := t.Metadata
	p := page{
		Title: "Clients in a control plane of two versions", Outcome: t.Result.Outcome(), Sentence: t.Sentence,
		Lead: fmt.Sprintf("Server a runs %s, the others %s. Clients ask an older server for resources that it serves and for resources that only "+
			"server a serves. The path direct leads to server a itself; the other paths lead through an older server whose proxy is the subject. "+
			"An older server cannot carry out an operation with the mark ↷ by itself. On the path none, the negative control, such an operation "+
			"must fail.", m.To, m.From),
		Facts: m.facts([][2]string{{"From", m.From}, {"To", m.To}, {"Operations", fmt.Sprint(len(t.Operations))}}), Tested: m.Tested,
		Reproduce: t.Reproduce, SkewproofVersion: m.SkewproofVersion, Document: ClientsJSON, TypeMeta: t.TypeMeta, Sections: t.sections(),
	}
	for _, left := range m.LeftOut {
		p.Notes = append(p.Notes, "Left out: "+left)
	}
	if !m.Complete {
		p.Notes = append(p.Notes, "The run ended before every operation was tried")
	}
	return p
}

// sections are the tables.
func (t ClientsTable) sections() (all []section) {
	for _, c := range t.Clients {
		operations := &table{Head: heads(append([]string{"operation"}, ClientPaths...)...)}
		operations.Head = append(operations.Head, column{Name: "result that must be true"})
		for _, o := range t.Operations {
			if o.Program != c.Name {
				continue
			}
			name := o.Name
			if o.Crosses {
				name += " ↷"
			}
			row := []tableCell{{Text: name}}
			for _, path := range ClientPaths {
				row = append(row, t.cellOf(o, path))
			}
			operations.Rows = append(operations.Rows, append(row, tableCell{Text: o.Sentence}))
		}
		all = append(all, section{Heading: c.Name, Note: "Versions: " + strings.Join(c.Versions, ", ") + ".", Table: operations})
	}
	if messages := t.messages(); len(messages.Rows) > 0 {
		all = append(all, section{Heading: "Messages of clients whose operations do not work", Table: messages})
	}
	return all
}

// cellOf describes the results of an operation on a path, for all versions of its program.
func (t ClientsTable) cellOf(o ClientOperation, path string) tableCell {
	by := map[Did][]string{}
	versions := t.versions(o)
	for _, version := range versions {
		did := t.cell(o.Name, path, version).Did
		by[did] = append(by[did], version)
	}
	cell := tableCell{Outcome: invariant.OutcomeInconclusive}
	switch {
	case len(by[DidNotWork]) > 0:
		cell.Outcome = invariant.OutcomeFail
	case len(by[DidNotRun]) == 0:
		cell.Outcome = invariant.OutcomePass
	}
	var words []string
	for _, did := range []Did{DidWork, DidNotWork, DidNotRun} {
		switch len(by[did]) {
		case 0:
		case len(versions):
			words = append(words, string(did))
		default:
			words = append(words, fmt.Sprintf("%s: %s", did, strings.Join(by[did], ", ")))
		}
	}
	cell.Text = strings.Join(words, "; ")
	return cell
}

// messages are the reasons of all cells that do not work, by path and operation. Equal ones are
// merged.
func (t ClientsTable) messages() *table {
	all := &table{Head: heads("path", "client", "operation", "versions", "message")}
	for _, path := range ClientPaths {
		for _, o := range t.Operations {
			var order []string
			by, versions := map[string][]string{}, t.versions(o)
			for _, client := range versions {
				c := t.cell(o.Name, path, client)
				if c.Did == DidWork {
					continue
				}
				order = appendNew(order, c.Reason)
				by[c.Reason] = append(by[c.Reason], client)
			}
			for _, reason := range order {
				clients := "all"
				if len(by[reason]) < len(versions) {
					clients = strings.Join(by[reason], ", ")
				}
				all.add(path, o.Program, o.Name, clients, reason)
			}
		}
	}
	return all
}

// SaveClientsPage writes the page of the documentation, whole or not at all. It has no date.
func SaveClientsPage(path string, t ClientsTable) error {
	return Write(path, []byte(t.documentation()))
}

func (t ClientsTable) documentation() string {
	var page strings.Builder
	introduction := strings.NewReplacer("FROM", inMarkdown(t.Metadata.From), "TO", inMarkdown(t.Metadata.To))
	page.WriteString(introduction.Replace(string(asset("clients/introduction.txt"))) + "\n")
	for _, left := range t.Metadata.LeftOut {
		page.WriteString(filled("", "Left out: "+inMarkdown(left)+".") + "\n")
	}
	page.WriteString(filled("", capital(inMarkdown(t.Sentence))+"."))
	for _, s := range t.sections() {
		page.WriteString(s.markdown())
	}
	return page.String()
}
