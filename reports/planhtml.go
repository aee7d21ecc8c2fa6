package reports

import "io"

var (
	planPage = newPage("plan/", "plan")
	planHead = newHead(nil, "plan/plan.css")
)

// planDocument is the input of the template.
type planDocument struct {
	UpgradePlan
	head
	// Answer is the first block, Sections are the others, cut at their headings.
	Answer   planText
	Sections []planSection
}

// planSection is a part of the page. Folded blocks are the tables behind the plan.
type planSection struct {
	Heading string
	Blocks  []planBlock
	Folded  bool
}

// WritePlanHTML writes the plan as one self-contained page without scripts, like [WriteHTML].
func WritePlanHTML(w io.Writer, p UpgradePlan) error {
	blocks := p.blocks()
	d := planDocument{UpgradePlan: p, head: planHead, Answer: blocks[0].Text}
	var folded []planSection
	for _, block := range blocks[1:] {
		to := &d.Sections
		if block.Detail == onlyWide {
			to = &folded
		}
		if block.Heading != "" || len(*to) == 0 {
			*to = append(*to, planSection{Heading: block.Heading, Folded: block.Detail == onlyWide})
		}
		last := &(*to)[len(*to)-1]
		last.Blocks = append(last.Blocks, block)
	}
	d.Sections = append(d.Sections, folded...)
	return writePage(w, planPage, d)
}
