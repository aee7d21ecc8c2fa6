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

type planSection struct {
	Heading string
	Blocks  []planBlock
}

// WritePlanHTML writes the plan as one self-contained page without scripts, like [WriteHTML].
func WritePlanHTML(w io.Writer, p UpgradePlan) error {
	blocks := p.blocks()
	d := planDocument{UpgradePlan: p, head: planHead, Answer: blocks[0].Text}
	for _, block := range blocks[1:] {
		if block.Heading != "" || len(d.Sections) == 0 {
			d.Sections = append(d.Sections, planSection{Heading: block.Heading})
		}
		last := &d.Sections[len(d.Sections)-1]
		last.Blocks = append(last.Blocks, block)
	}
	return writePage(w, planPage, d)
}
