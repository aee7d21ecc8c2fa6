package reports

import (
	"fmt"
	"strings"
)

// A plan is rendered in two steps: into blocks, which are the same for a terminal, Markdown and
// HTML, and then into one of these forms.

// planBlock is one part of a rendered plan. Only one of the fields after Heading is set.
type planBlock struct {
	Heading string
	Text    planText
	List    []planText
	Ordered []planItem
	Table   *planTable
	Code    string
}

// planItem is an item of an ordered list.
type planItem struct {
	Title planText
	Text  planText
	Code  []string
}

type planTable struct {
	Head []string
	Rows [][]planText
}

// planText is text with code in it.
type planText []planSpan

// planSpan is a piece of text. Code may be hostile, and so may be the rest.
type planSpan struct {
	Text string
	Code bool
}

// prose reads a text with code in backquotes.
func prose(s string) (t planText) {
	for i, piece := range strings.Split(s, "`") {
		if piece != "" {
			t = append(t, planSpan{piece, i%2 == 1})
		}
	}
	return t
}

func codes(names ...string) (t planText) {
	for i, name := range names {
		if i > 0 {
			t = append(t, planSpan{Text: ", "})
		}
		t = append(t, planSpan{plain(name), true})
	}
	return t
}

func proses(all []string) (texts []planText) {
	for _, s := range all {
		texts = append(texts, prose(s))
	}
	return texts
}

// blocks are the plan in the order in which an operator reads it.
func (p UpgradePlan) blocks() []planBlock {
	all := []planBlock{{Text: prose(p.Sentence)}}
	if len(p.Notes) > 0 {
		all = append(all, planBlock{List: proses(p.Notes)})
	}
	all = append(all, planBlock{Heading: "What keeps you safe in any case", List: proses(p.Avoid)})
	all = append(all, p.resourceBlocks("What appears", "only "+p.To+" serves", p.Appears)...)
	all = append(all, p.resourceBlocks("What vanishes", "only "+p.From+" serves", p.Vanishes)...)
	if len(p.Preferred) > 0 {
		table := planTable{Head: []string{"group", p.From, p.To}}
		for _, g := range p.Preferred {
			table.Rows = append(table.Rows, []planText{codes(g.Group), codes(g.From), codes(g.To)})
		}
		all = append(all, planBlock{Heading: "Preferred versions that change", Table: &table})
	}
	if len(p.Appears)+len(p.Vanishes) > 0 {
		table := planTable{Head: []string{"who uses everything that discovery lists", "what for", "source"}}
		for _, u := range p.Everything {
			table.Rows = append(table.Rows, []planText{prose(u.Who), prose(u.Does), codes(u.Source)})
		}
		all = append(all, planBlock{Table: &table})
	}
	all = append(all, p.protectionBlocks()...)
	all = append(all, p.findingBlocks()...)
	var steps []planItem
	for _, s := range p.Checklist {
		code := append([]string{}, s.Commands...)
		if len(code) > 0 {
			code = []string{strings.Join(code, "\n")}
		}
		if s.File != "" {
			code = append(code, strings.TrimSuffix(s.File, "\n"))
		}
		steps = append(steps, planItem{prose(s.Title), prose(s.Text), code})
	}
	all = append(all, planBlock{Heading: "Checklist", Ordered: steps})
	metrics := planTable{Head: []string{"metric of every kube-apiserver", "from", "bad value", "what it means"}}
	for _, m := range p.Metrics {
		metrics.Rows = append(metrics.Rows, []planText{codes(m.Name), prose("v" + m.Since), prose(m.Bad), prose(m.Means)})
	}
	all = append(all,
		planBlock{Heading: "Watch", Table: &metrics},
		planBlock{Heading: "Stop if", List: proses(p.Stop)},
		planBlock{Heading: "Go back", List: proses(p.Back)})
	rehearsal := planTable{Head: []string{"scenario", "what it rehearses"}}
	var commands []string
	for _, s := range p.Rehearsal {
		rehearsal.Rows = append(rehearsal.Rows, []planText{codes(s.Name), prose(s.Why)})
		commands = append(commands, s.Command)
	}
	return append(all, planBlock{Heading: "Rehearse", Table: &rehearsal}, planBlock{Code: strings.Join(commands, "\n")})
}

func (p UpgradePlan) resourceBlocks(title, serves string, resources []PlanResource) []planBlock {
	if len(resources) == 0 {
		return []planBlock{{Heading: title, Text: prose("Nothing: there is no resource that " + serves + ".")}}
	}
	table := planTable{Head: []string{"resource", "on", "the other version has", "who uses it"}}
	for _, r := range resources {
		other := planText{{Text: "–"}}
		if len(r.Other) > 0 {
			other = codes(r.Other...)
		}
		users := planText{{Text: "clients that ask for it"}}
		if len(r.Users) > 0 {
			users = nil
			for i, u := range r.Users {
				if i > 0 {
					users = append(users, planSpan{Text: "; "})
				}
				users = append(users, prose(u.Who+" "+u.Does)...)
				users = append(users, planSpan{Text: " ("}, planSpan{u.Source, true}, planSpan{Text: ")"})
			}
		}
		table.Rows = append(table.Rows, []planText{codes(r.Name()), prose(r.On), other, users})
	}
	return []planBlock{{Heading: title, Table: &table}}
}

func (p UpgradePlan) protectionBlocks() []planBlock {
	table := planTable{Head: []string{"flags of all kube-apiservers",
		"at " + p.From + " for what only " + p.To + " has", "at " + p.To + " for what only " + p.From + " has"}}
	var why []planText
	for _, c := range p.Protection {
		name := prose(c.Configuration)
		if c.Asked {
			name = append(planText{{Text: "→ "}}, name...)
			why = append(why, prose(c.Sentence))
			for _, side := range []PlanSide{c.Old, c.New} {
				if side.Why != "" {
					why = append(why, append(planText{{Text: side.Version + ": "}}, prose(side.Why)...))
				}
			}
		}
		row := []planText{name}
		for _, way := range c.Ways {
			row = append(row, prose(way.Sentence))
		}
		table.Rows = append(table.Rows, row)
	}
	return []planBlock{{Heading: "Protection by the Mixed Version Proxy", List: why}, {Table: &table}}
}

func (p UpgradePlan) findingBlocks() []planBlock {
	if len(p.Findings) == 0 {
		return []planBlock{{Heading: "Known defects that apply", Text: prose("None.")}}
	}
	table := planTable{Head: []string{"finding", "applies", "when", "deleted", "hangs or stays behind", "who notices", "for how long"}}
	for _, f := range p.Findings {
		title := append(planText{{Text: fmt.Sprintf("%d ", f.Number)}}, prose(f.Title)...)
		table.Rows = append(table.Rows, []planText{title, prose("at " + f.Servers + ", " + f.Flags),
			prose(f.When), prose(f.Deleted), prose(f.Hangs), prose(f.Noticed), prose(f.Lasts)})
	}
	return []planBlock{{Heading: "Known defects that apply", Table: &table}}
}
