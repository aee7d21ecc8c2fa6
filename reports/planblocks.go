package reports

import (
	"cmp"
	"fmt"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/internal/invariant"
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

// code is the code of names, with a comma between them, for prose.
func code(names ...string) string {
	var all []string
	for _, name := range names {
		all = append(all, "`"+strings.ReplaceAll(plain(name), "`", "'")+"`")
	}
	return strings.Join(all, ", ")
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
		all = append(all, planBlock{Heading: "Harm with the Mixed Version Proxy, compared with servers without it", Detail: onlyWide, List: proses(p.Comparison)})
	}
	all = append(all, p.protection()...)
	all = append(all, p.findingBlocks()...)
	var metrics [][]string
	for _, m := range p.Metrics {
		metrics = append(metrics, []string{code(m.Name), m.Where, "v" + m.Since, m.Bad, m.Means, m.Rises})
	}
	all = append(all, wideTable("Watch", metrics, "what to watch", "where", "from", "bad value", "what it means", "rises within")...)
	all = append(all,
		planBlock{Heading: "Stop if", List: proses(p.Stop)},
		planBlock{Detail: onlyWide, Code: strings.Join(p.StopCommands, "\n")},
		planBlock{Heading: "Go back", List: proses(p.Back)})
	return append(append(all, p.rehearsalBlocks()...), planBlock{Heading: "What this plan does not know", List: proses(p.Notes)})
}

// wideTable is a table of prose for who asks for everything; nil without rows.
func wideTable(heading string, rows [][]string, head ...string) []planBlock {
	if len(rows) == 0 {
		return nil
	}
	table := planTable{Head: head}
	for _, row := range rows {
		table.Rows = append(table.Rows, proses(row))
	}
	return []planBlock{{Heading: heading, Detail: onlyWide, Table: &table}}
}

// firstScreen is what decides: whether the servers start, whether they are protected, what can do
// harm, and what to do.
func (p UpgradePlan) firstScreen() []planBlock {
	all := []planBlock{{Text: prose(p.Sentence)}}
	asked := p.Protection[0]
	var servers, harms []string
	for i, side := range []PlanSide{asked.Old, asked.New} {
		says := " starts. " + side.Why
		switch {
		case !side.Starts:
			says = ": " + side.Why
		case i == 1 && asked.Old.Starts && side.Why != "" && side.Why == asked.Old.Why:
			says = " starts, too, with the same effect."
		}
		servers = append(servers, code(side.Version)+says)
	}
	if d := p.Decides(); d.Outcome != invariant.OutcomeFail {
		servers = append(servers, d.Word+": "+d.Said)
	}
	all = append(all, planBlock{Heading: "Servers and protection", List: proses(servers)})
	for _, h := range p.Harms {
		prevent := ""
		if h.Prevent != "" {
			prevent = " Prevented by: " + h.Prevent + "."
		}
		harms = append(harms, h.What+" Harms: "+h.Whom+"."+prevent+" ("+h.Source+")")
	}
	if len(harms) == 0 {
		harms = []string{"Nothing that is known, with these flags."}
	}
	all = append(all, planBlock{Heading: "What can do harm", List: proses(harms)})
	all = append(all, p.fieldBlocks()...)
	var steps []planItem
	for _, s := range p.Checklist {
		var code []string
		if len(s.Commands) > 0 {
			code = []string{strings.Join(s.Commands, "\n")}
		}
		if s.File != "" {
			code = append(code, strings.TrimSuffix(s.File, "\n"))
		}
		steps = append(steps, planItem{prose(s.Title), prose(s.Text), code})
	}
	return append(all, planBlock{Heading: "What to do", Ordered: steps})
}

// planDecision is what the flags of the servers decide: whether all start, and whether clients are
// protected. Outcome gives the colour: fail if a server does not start, and pass if nothing that is
// known can do harm.
type planDecision struct {
	Outcome    invariant.Outcome
	Word, Said string
}

// Decides is for the page.
func (p UpgradePlan) Decides() planDecision {
	c := p.Protection[0]
	d := planDecision{invariant.OutcomeKnown, "Not protected", c.Sentence}
	if len(p.Harms) == 0 {
		d.Outcome = invariant.OutcomePass
	}
	switch a, b := c.Ways[0].Protected, c.Ways[1].Protected; {
	case !c.Old.Starts || !c.New.Starts:
		d.Outcome, d.Word = invariant.OutcomeFail, "Does not start"
	case len(p.Appears)+len(p.Vanishes) == 0:
		d.Word, d.Said = "Nothing to protect", "No server lacks what another one serves."
	case a && b:
		d.Word = "Protected"
	case a || b:
		d.Word = "Protected in one direction"
	}
	return d
}

// differences are what appears and vanishes: in brief a list, by group version.
func (p UpgradePlan) differences() (all []planBlock) {
	var brief []string
	for _, side := range []struct {
		title, serves string
		resources     []PlanResource
		others        bool
	}{{"What appears", "only " + p.To + " serves", p.Appears, false}, {"What vanishes", "only " + p.From + " serves", p.Vanishes, true}} {
		if len(side.resources) == 0 {
			brief = append(brief, "There is no resource that "+side.serves+".")
			continue
		}
		brief = append(brief, side.serves+": "+byGroupVersion(side.resources, side.others))
		all = append(all, resourceTable(side.title, side.resources)...)
	}
	all = append([]planBlock{{Heading: "What appears and vanishes", Detail: onlyBrief, List: proses(brief)}}, all...)
	all = append(all, p.skewBlocks()...)
	var demands [][]string
	for _, d := range p.Demands {
		demands = append(demands, []string{d.Minor, d.Text, code(d.Source)})
	}
	return append(all, wideTable("What release notes demand", demands, "release notes of", "demand", "source")...)
}

// mostGroupVersions limits the group versions of a list in brief.
const mostGroupVersions = 6

// byGroupVersion names resources by group version; with others, also the versions in which the
// other release serves them.
func byGroupVersion(resources []PlanResource, others bool) string {
	var all []string
	last, switchedOn := "", 0
	for _, r := range resources { // sorted by group version
		if r.On == PlanByRuntimeConfig {
			switchedOn++
			continue
		}
		groupVersion := apischema.GroupVersion{Group: r.Group, Version: r.Version}.String()
		text := code(strings.TrimPrefix(r.Name(), groupVersion+"/"))
		if len(r.RefusedNodes) > 0 {
			text += " (nodes get 403)"
		}
		if others && len(r.Other) > 0 {
			text += " (there in " + code(r.Other...) + ")"
		}
		if groupVersion == last {
			all[len(all)-1] += ", " + text
			continue
		}
		last, all = groupVersion, append(all, code(groupVersion)+": "+text)
	}
	if more := len(all) - mostGroupVersions; more > 0 {
		all = append(all[:mostGroupVersions], counted(more, "more group version")+" (`-o wide` names them)")
	}
	if switchedOn > 0 {
		all = append(all, counted(switchedOn, "resource")+" only with `--runtime-config` (`-o wide` names them)")
	}
	return strings.Join(all, "; ") + "."
}

func resourceTable(heading string, resources []PlanResource) []planBlock {
	var rows [][]string
	for _, r := range resources {
		var users []string
		for _, u := range r.Users {
			users = append(users, u.Who+" "+u.Does+" ("+code(u.Source)+")")
		}
		if len(users) == 0 {
			users = []string{"clients that ask for it"}
		}
		if len(r.RefusedNodes) > 0 {
			users = append(users, "the other version answers nodes 403: "+strings.Join(r.RefusedNodes, ", "))
		}
		rows = append(rows, []string{code(r.Name()), r.On, cmp.Or(code(r.Other...), "–"), strings.Join(users, "; ")})
	}
	return wideTable(heading, rows, "resource", "on", "the other version has", "who uses it")
}

func (p UpgradePlan) protection() []planBlock {
	var rows [][]string
	for i, c := range p.Protection {
		name := c.Configuration
		if i == 0 {
			name = "→ " + name
		}
		rows = append(rows, []string{name, c.Ways[0].Sentence, c.Ways[1].Sentence})
	}
	return wideTable("Protection by the Mixed Version Proxy", rows, "flags of all kube-apiservers",
		"at "+p.From+" for what only "+p.To+" has", "at "+p.To+" for what only "+p.From+" has")
}

// findingBlocks are the defects, grouped by their condition: in brief their numbers, and the titles
// of those that can do harm under the first condition.
func (p UpgradePlan) findingBlocks() (all []planBlock) {
	const heading = "Known defects that apply"
	if len(p.Findings) == 0 {
		return []planBlock{{Heading: heading, Text: prose("None.")}}
	}
	var rows [][]string
	var lines []string
	for i, f := range p.Findings {
		title := fmt.Sprintf("%d %s", f.Number, f.Title)
		rows = append(rows, []string{title, "at " + f.Servers + ", " + f.Flags + ", " + f.Condition, f.When, f.Deleted, f.Hangs, f.Noticed, f.Lasts})
		first := i == 0 || p.Findings[i-1].Condition != f.Condition
		separator := ", "
		switch kind := "wrong answers: "; {
		case first:
			if f.Harms {
				kind = "can do harm: "
			}
			lines, separator = append(lines, ""), f.Condition+", "+kind
		case f.Harms != p.Findings[i-1].Harms:
			separator = "; " + kind
		}
		if !f.Harms || len(lines) > 1 {
			title = fmt.Sprint(f.Number)
		} else if !first {
			separator = "; "
		}
		lines[len(lines)-1] += separator + title
	}
	return append([]planBlock{{Heading: heading, Detail: onlyBrief, List: proses(lines)}},
		wideTable(heading, rows, "finding", "applies", "when", "deleted", "hangs or stays behind", "who notices", "for how long")...)
}

func (p UpgradePlan) rehearsalBlocks() []planBlock {
	if len(p.Rehearsal) == 0 {
		return nil
	}
	const heading = "Rehearse"
	var names, commands, verdicts []string
	var rows [][]string
	for _, s := range p.Rehearsal {
		names = append(names, s.Name)
		commands = append(commands, s.Command)
		rows = append(rows, []string{code(s.Name), s.Why})
		if s.Verdict != "" {
			verdicts = append(verdicts, s.Verdict+" "+code(s.Name)+": "+s.Says)
		}
	}
	all, lacks := []planBlock{{Heading: "Rehearsed", List: proses(verdicts)}}, always
	if len(verdicts) == 0 {
		text := "`--rehearse` carries out these scenarios on real kube-apiservers on this machine: " + code(names...)
		if len(p.Lacks) > 0 {
			text += ". Not every run has all of your flags (`-o wide` says why)."
		}
		all, lacks = []planBlock{{Heading: heading, Detail: onlyBrief, Text: prose(text)}}, onlyWide
	}
	all = append(all, wideTable(heading, rows, "scenario", "what it rehearses")...)
	if len(p.Lacks) > 0 {
		all = append(all, planBlock{Detail: lacks, List: proses(p.Lacks)})
	}
	return append(all, planBlock{Detail: onlyWide, Code: strings.Join(commands, "\n")})
}
