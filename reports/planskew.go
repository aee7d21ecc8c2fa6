package reports

import (
	"cmp"
	"slices"
	"strings"
)

// mostFields limits the fields of a list in brief.
const mostFields = 12

// fieldBlocks are the fields: in brief a line for each one that can do harm.
func (p UpgradePlan) fieldBlocks() []planBlock {
	const heading = "Fields that the versions treat differently"
	if len(p.Fields) == 0 {
		return nil
	}
	var lines []string
	shown := slices.DeleteFunc(slices.Clone(p.FieldHarms), func(h PlanFieldHarm) bool { // users seldom write through subresources, and see what is refused
		return strings.Contains(h.Kinds[0], "/") || h.Harm == PlanRefused || h.Harm == PlanFrozen
	})
	shown = shown[:min(len(shown), mostFields)]
	for _, h := range shown {
		of := h.Kinds[0]
		if len(h.Kinds) > 1 {
			of = counted(len(h.Kinds), "kind")
		}
		lines = append(lines, h.Harm+" at "+h.By+": "+code(h.Path)+" ("+of+")")
	}
	rest := counted(len(p.Fields), "difference") + " in all, by kind"
	if more := len(p.FieldHarms) - len(shown); more > 0 {
		rest = counted(more, "more field") + " can do harm; " + rest
	}
	lines = append(lines, rest+" (`-o wide` has them)")
	var rows [][]string
	for _, f := range p.Fields {
		name := code(f.GVR.String()) + " " + code(f.Path)
		if len(f.Values) > 0 {
			name += " = " + code(f.Values...)
		}
		if f.Changed {
			name += ", in an object that exists"
		}
		without := f.GateNames()
		if f.Emulated {
			without = append(without, "--emulated-version")
		}
		rows = append(rows, []string{name, f.Older.String(), f.Newer.String(), cmp.Or(string(f.Update), "not tried"), cmp.Or(code(without...), "–")})
	}
	return append([]planBlock{{Heading: heading, Detail: onlyBrief, List: proses(lines)}},
		wideTable(heading, rows, "field", "sent to "+p.From, "sent to "+p.To, "written back through "+p.From, "not with")...)
}

// skewBlocks are what controllers create, and what is permitted, at one version only.
func (p UpgradePlan) skewBlocks() []planBlock {
	var created, permissions [][]string
	for _, c := range p.Created {
		created = append(created, []string{code(c.GVR.String()), code(c.Names...), code(c.By...)})
	}
	for _, d := range p.Permissions {
		permissions = append(permissions, []string{d.Who + " may with " + code(d.Kind),
			cmp.Or(strings.Join(d.From, ", "), "–"), cmp.Or(strings.Join(d.To, ", "), "–")})
	}
	all := wideTable("What controllers create by themselves", created, "only controllers of "+p.To+" create", "objects", "as")
	all = append(all, wideTable("What is permitted", permissions, "without rights of its own", "only at "+p.From, "only at "+p.To)...)
	if len(permissions) > 0 {
		note := "A node's rights are in the program. Those of others are in etcd: what the newer version adds there applies at every server from its first start on."
		all = append(all, planBlock{Detail: onlyWide, Text: prose(note)})
	}
	return all
}
