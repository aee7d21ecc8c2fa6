package reports

import (
	"cmp"
	"slices"
	"strings"
)

// mostFields limits the fields of a list in brief.
const mostFields = 12

// fieldBlocks are the fields: in brief a line for each one that can do harm.
func (p UpgradePlan) fieldBlocks() (all []planBlock) {
	const heading = "Fields that the versions treat differently"
	if len(p.Fields) == 0 {
		return nil
	}
	var lines []planText
	shown := slices.DeleteFunc(slices.Clone(p.FieldHarms), func(h PlanFieldHarm) bool { // users seldom write through subresources
		return strings.Contains(h.Kinds[0], "/")
	})
	shown = shown[:min(len(shown), mostFields)]
	for _, h := range shown {
		of := h.Kinds[0]
		if len(h.Kinds) > 1 {
			of = counted(len(h.Kinds), "kind")
		}
		lines = append(lines, append(append(prose(h.Harm+" at "+h.By+": "), codes(h.Path)...), planSpan{Text: " (" + of + ")"}))
	}
	rest := counted(len(p.Fields), "difference") + " in all, by kind"
	if more := len(p.FieldHarms) - len(shown); more > 0 {
		rest = counted(more, "more field") + " can do harm; " + rest
	}
	lines = append(lines, prose(rest+" (`-o wide` has them)"))
	table := planTable{Head: []string{"field", p.From + " on create", p.To + " on create", "written back through " + p.From, "not with"}}
	for _, f := range p.Fields {
		name := append(codes(f.GVR.String()), planSpan{Text: " "})
		name = append(name, codes(f.Path)...)
		if len(f.Values) > 0 {
			name = append(append(name, planSpan{Text: " = "}), codes(f.Values...)...)
		}
		without := f.GateNames()
		if f.Emulated {
			without = append(without, "--emulated-version")
		}
		table.Rows = append(table.Rows, []planText{name, prose(f.Older.String()), prose(f.Newer.String()),
			prose(cmp.Or(string(f.Update), "not tried")), orDash(codes(without...))})
	}
	return []planBlock{{Heading: heading, Detail: onlyBrief, List: lines}, {Heading: heading, Detail: onlyWide, Table: &table}}
}

// skewBlocks are what controllers create, and what is permitted, at one version only.
func (p UpgradePlan) skewBlocks() (all []planBlock) {
	if len(p.Created) > 0 {
		table := planTable{Head: []string{"only controllers of " + p.To + " create", "objects", "as"}}
		for _, c := range p.Created {
			table.Rows = append(table.Rows, []planText{codes(c.GVR.String()), codes(c.Names...), codes(c.By...)})
		}
		all = append(all, planBlock{Heading: "What controllers create by themselves", Detail: onlyWide, Table: &table})
	}
	if len(p.Permissions) > 0 {
		table := planTable{Head: []string{"without rights of its own", "only at " + p.From, "only at " + p.To}}
		for _, d := range p.Permissions {
			table.Rows = append(table.Rows, []planText{append(prose(d.Who+" may with "), codes(d.Kind)...),
				orDash(prose(strings.Join(d.From, ", "))), orDash(prose(strings.Join(d.To, ", ")))})
		}
		note := "A node's rights are in the program. Those of others are in etcd: what the newer version adds there applies at every server from its first start on."
		all = append(all, planBlock{Heading: "What is permitted", Detail: onlyWide, Table: &table}, planBlock{Detail: onlyWide, Text: prose(note)})
	}
	return all
}

func orDash(text planText) planText {
	if len(text) == 0 {
		return planText{{Text: "–"}}
	}
	return text
}
