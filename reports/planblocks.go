package reports

import (
	"fmt"
	"strings"
)

// A plan is rendered in two steps: into blocks, which are the same for a terminal, Markdown and
// HTML, and then into one of these forms.

// planBlock is one part of a rendered plan. Only one of the fields after Detail is set.
type planBlock struct {
	Heading string
	Detail  planDetail
	Text    planText
	List    []planText
	Ordered []planItem
	Table   *planTable
	Code    string
}

// planDetail says which readers see a block.
type planDetail int

const (
	always    planDetail = iota
	onlyBrief            // who does not ask for everything
	onlyWide             // who does; HTML folds these blocks
)

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

// blocks are the plan in the order in which an operator reads it: the first screen, the details,
// and then the tables behind them, which most readers do not need.
func (p UpgradePlan) blocks() []planBlock {
	all := append(p.firstScreen(), p.differences()...)
	if len(p.Comparison) > 0 {
		var changes []planText
		for _, c := range p.Comparison {
			changes = append(changes, prose(c.Change+": "+c.Text))
		}
		all = append(all, planBlock{Heading: "Harm with the Mixed Version Proxy, compared with servers without it", Detail: onlyWide, List: changes})
	}
	all = append(all, p.protectionBlock())
	all = append(all, p.findingBlocks()...)
	metrics := planTable{Head: []string{"metric of every kube-apiserver", "from", "bad value", "what it means"}}
	for _, m := range p.Metrics {
		metrics.Rows = append(metrics.Rows, []planText{codes(m.Name), prose("v" + m.Since), prose(m.Bad), prose(m.Means)})
	}
	all = append(all,
		planBlock{Heading: "Watch", Detail: onlyWide, Table: &metrics},
		planBlock{Heading: "Stop if", List: proses(p.Stop)},
		planBlock{Heading: "Go back", List: proses(p.Back)})
	return append(append(all, p.rehearsalBlocks()...), planBlock{Heading: "What this plan does not know", List: proses(p.Notes)})
}

// firstScreen is what decides: whether the servers start, whether they are protected, what can do
// harm, and what to do.
func (p UpgradePlan) firstScreen() []planBlock {
	all := []planBlock{{Text: prose(p.Sentence)}}
	var servers []planText
	for _, c := range p.Protection {
		for _, side := range []PlanSide{c.Old, c.New} {
			if !c.Asked {
				continue
			}
			says := " starts. "
			if !side.Starts {
				says = ": "
			}
			says += side.Why
			if len(servers) == 1 && c.Old.Starts && side.Starts && side.Why != "" && side.Why == c.Old.Why {
				says = " starts, too, with the same effect."
			}
			servers = append(servers, append(codes(side.Version), prose(says)...))
		}
		if c.Asked && c.Old.Starts && c.New.Starts {
			servers = append(servers, prose(c.word()+": "+c.Sentence))
		}
	}
	all = append(all, planBlock{Heading: "Servers and protection", List: servers})
	var harms []planText
	for _, h := range p.Harms {
		prevent := ""
		if h.Prevent != "" {
			prevent = " Prevented by: " + h.Prevent + "."
		}
		harms = append(harms, prose(h.What+" Harms: "+h.Whom+"."+prevent+" ("+h.Source+")"))
	}
	if len(harms) == 0 {
		harms = []planText{prose("Nothing that is known, with these flags.")}
	}
	all = append(all, planBlock{Heading: "What can do harm", List: harms})
	all = append(all, p.fieldBlocks()...)
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
	return append(all, planBlock{Heading: "What to do", Ordered: steps})
}

// word says whether clients are protected.
func (c PlanProtection) word() string {
	switch a, b := c.Ways[0].Protected, c.Ways[1].Protected; {
	case a && b:
		return "Protected"
	case a || b:
		return "Protected in one direction"
	}
	return "Not protected"
}

// differences are what appears and vanishes: in brief a list, by group version.
func (p UpgradePlan) differences() (all []planBlock) {
	brief := planBlock{Heading: "What appears and vanishes", Detail: onlyBrief}
	for _, side := range []struct {
		title, serves string
		resources     []PlanResource
		others        bool
	}{{"What appears", "only " + p.To + " serves", p.Appears, false}, {"What vanishes", "only " + p.From + " serves", p.Vanishes, true}} {
		if len(side.resources) == 0 {
			brief.List = append(brief.List, prose("There is no resource that "+side.serves+"."))
			continue
		}
		brief.List = append(brief.List, append(prose(side.serves+": "), byGroupVersion(side.resources, side.others)...))
		all = append(all, planBlock{Heading: side.title, Detail: onlyWide, Table: resourceTable(side.resources)})
	}
	all = append([]planBlock{brief}, all...)
	all = append(all, p.skewBlocks()...)
	if len(p.Preferred) > 0 {
		table := planTable{Head: []string{"group", p.From, p.To}}
		for _, g := range p.Preferred {
			table.Rows = append(table.Rows, []planText{codes(g.Group), codes(g.From), codes(g.To)})
		}
		all = append(all, planBlock{Heading: "Preferred versions that change", Detail: onlyWide, Table: &table})
	}
	if len(p.Appears)+len(p.Vanishes) > 0 {
		table := planTable{Head: []string{"who uses everything that discovery lists", "what for", "source"}}
		for _, u := range p.Everything {
			table.Rows = append(table.Rows, []planText{prose(u.Who), prose(u.Does), codes(u.Source)})
		}
		all = append(all, planBlock{Detail: onlyWide, Table: &table})
	}
	if len(p.Demands) > 0 {
		table := planTable{Head: []string{"release notes of", "demand", "source"}}
		for _, d := range p.Demands {
			table.Rows = append(table.Rows, []planText{prose(d.Minor), prose(d.Text), codes(d.Source)})
		}
		all = append(all, planBlock{Heading: "What release notes demand", Detail: onlyWide, Table: &table})
	}
	return all
}

// mostGroupVersions limits the group versions of a list in brief.
const mostGroupVersions = 6

// byGroupVersion names resources by group version; with others, also the versions in which the
// other release serves them.
func byGroupVersion(resources []PlanResource, others bool) (all planText) {
	var order []string
	names := map[string]planText{}
	switchedOn := 0
	for _, r := range resources {
		if r.On == PlanByRuntimeConfig {
			switchedOn++
			continue
		}
		name := r.Resource
		if r.Subresource != "" {
			name += "/" + r.Subresource
		}
		gv, _ := strings.CutSuffix(r.Name(), "/"+name)
		text, known := names[gv]
		if !known {
			order = append(order, gv)
			text = append(codes(gv), planSpan{Text: ": "})
		} else {
			text = append(text, planSpan{Text: ", "})
		}
		text = append(text, codes(name)...)
		if len(r.RefusedNodes) > 0 {
			text = append(text, planSpan{Text: " (nodes get 403)"})
		}
		if others && len(r.Other) > 0 {
			text = append(append(append(text, planSpan{Text: " (there in "}), codes(r.Other...)...), planSpan{Text: ")"})
		}
		names[gv] = text
	}
	next := func(text planText) {
		if len(all) > 0 {
			all = append(all, planSpan{Text: "; "})
		}
		all = append(all, text...)
	}
	for _, gv := range order[:min(len(order), mostGroupVersions)] {
		next(names[gv])
	}
	if more := len(order) - mostGroupVersions; more > 0 {
		next(prose(counted(more, "more group version") + " (`-o wide` names them)"))
	}
	if switchedOn > 0 {
		next(prose(counted(switchedOn, "resource") + " only with `--runtime-config` (`-o wide` names them)"))
	}
	return append(all, planSpan{Text: "."})
}

func resourceTable(resources []PlanResource) *planTable {
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
		if len(r.RefusedNodes) > 0 {
			users = append(users, planSpan{Text: "; the other version answers nodes 403: " + strings.Join(r.RefusedNodes, ", ")})
		}
		table.Rows = append(table.Rows, []planText{codes(r.Name()), prose(r.On), other, users})
	}
	return &table
}

func (p UpgradePlan) protectionBlock() planBlock {
	table := planTable{Head: []string{"flags of all kube-apiservers",
		"at " + p.From + " for what only " + p.To + " has", "at " + p.To + " for what only " + p.From + " has"}}
	for _, c := range p.Protection {
		name := prose(c.Configuration)
		if c.Asked {
			name = append(planText{{Text: "→ "}}, name...)
		}
		row := []planText{name}
		for _, way := range c.Ways {
			row = append(row, prose(way.Sentence))
		}
		table.Rows = append(table.Rows, row)
	}
	return planBlock{Heading: "Protection by the Mixed Version Proxy", Detail: onlyWide, Table: &table}
}

// findingBlocks are the defects, grouped by their condition: in brief their numbers, and the titles
// of those that can delete something under the first condition.
func (p UpgradePlan) findingBlocks() (all []planBlock) {
	const heading = "Known defects that apply"
	if len(p.Findings) == 0 {
		return []planBlock{{Heading: heading, Text: prose("None.")}}
	}
	table := planTable{Head: []string{"finding", "applies", "when", "deleted", "hangs or stays behind", "who notices", "for how long"}}
	var lines []planText
	for i, f := range p.Findings {
		title := append(planText{{Text: fmt.Sprintf("%d ", f.Number)}}, prose(f.Title)...)
		table.Rows = append(table.Rows, []planText{title, prose("at " + f.Servers + ", " + f.Flags + ", " + f.Condition),
			prose(f.When), prose(f.Deleted), prose(f.Hangs), prose(f.Noticed), prose(f.Lasts)})
		first := i == 0 || p.Findings[i-1].Condition != f.Condition
		separator := ", "
		switch kind := "wrong answers: "; {
		case first:
			if f.Harms {
				kind = "can delete: "
			}
			lines, separator = append(lines, nil), f.Condition+", "+kind
		case f.Harms != p.Findings[i-1].Harms:
			separator = "; " + kind
		}
		if !f.Harms || len(lines) > 1 {
			title = prose(fmt.Sprint(f.Number))
		} else if !first {
			separator = "; "
		}
		last := &lines[len(lines)-1]
		*last = append(append(*last, planSpan{Text: separator}), title...)
	}
	return []planBlock{{Heading: heading, Detail: onlyBrief, List: lines}, {Heading: heading, Detail: onlyWide, Table: &table}}
}

func (p UpgradePlan) rehearsalBlocks() []planBlock {
	if len(p.Rehearsal) == 0 {
		return nil
	}
	const heading = "Rehearse"
	table := planTable{Head: []string{"scenario", "what it rehearses"}}
	var names, commands []string
	var verdicts []planText
	for _, s := range p.Rehearsal {
		names = append(names, s.Name)
		commands = append(commands, s.Command)
		table.Rows = append(table.Rows, []planText{codes(s.Name), prose(s.Why)})
		if s.Verdict != "" {
			verdicts = append(verdicts, append(append(prose(s.Verdict+" "), codes(s.Name)...), planSpan{Text: ": " + s.Says}))
		}
	}
	all := []planBlock{{Heading: "Rehearsed", List: verdicts}}
	if len(verdicts) == 0 {
		text := append(prose("`--rehearse` carries out these scenarios on real kube-apiservers on this machine: "), codes(names...)...)
		all = []planBlock{{Heading: heading, Detail: onlyBrief, Text: text}}
	}
	return append(all, planBlock{Heading: heading, Detail: onlyWide, Table: &table},
		planBlock{Detail: onlyWide, Code: strings.Join(commands, "\n")})
}
