package reports

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/skewproof/skewproof/reports/findings"
)

// FindingNote says in short what a finding is that the report names, so that a reader of the report
// needs no other page.
type FindingNote struct {
	// Number, Title, Symptom, Impact, Versions, Class and Disclosure are those of the finding
	// (docs/findings.md).
	Number     int                 `json:"number"`
	Title      string              `json:"title"`
	Symptom    string              `json:"symptom,omitempty"`
	Impact     string              `json:"impact,omitempty"`
	Versions   string              `json:"versions,omitempty"`
	Class      findings.Class      `json:"class,omitempty"`
	Disclosure findings.Disclosure `json:"disclosure,omitempty"`
}

// newNotes describes the findings that the report names, by number.
func newNotes(r RunReport, known findings.Catalogue) (notes []FindingNote) {
	named := map[int]bool{}
	for _, i := range r.Invariants {
		for _, f := range i.Findings {
			named[f] = true
		}
	}
	for _, k := range r.Verdict.Missing {
		named[k.Finding] = true
	}
	for _, f := range known {
		if named[f.Number] {
			notes = append(notes, newNote(f))
		}
	}
	slices.SortFunc(notes, func(a, b FindingNote) int { return a.Number - b.Number })
	return notes
}

// described links the findings that a page about many runs names, and describes those that it has
// linked. All fields are in use after newDescribed only.
type described struct {
	findings findings.Catalogue
	links    mentions
	named    map[string]bool // the links that the page has
}

func newDescribed() *described {
	d := &described{findings.All(), mentions{}, map[string]bool{}}
	for _, f := range d.findings {
		d.links[strconv.Itoa(f.Number)] = fmt.Sprintf("#finding-%d", f.Number)
	}
	return d
}

// Linked links the findings in a text.
func (d *described) Linked(text string) []part {
	parts := d.links.in(text)
	for _, p := range parts {
		d.named[p.Link] = true
	}
	return parts
}

// Described describes the findings that the page has linked so far.
func (d *described) Described() (notes []FindingNote) {
	for _, f := range d.findings {
		if d.named[d.links[strconv.Itoa(f.Number)]] {
			notes = append(notes, newNote(f))
		}
	}
	return notes
}

func newNote(f findings.Finding) FindingNote {
	return FindingNote{f.Number, f.Title, f.Symptom, f.Impact, f.Versions, f.Class, f.Disclosure}
}

// part is a part of a text. Link is empty, or leads to a part of the page.
type part struct{ Text, Link string }

// mentions are the links from the words of texts to what the page says about them.
type mentions map[string]string

// newMentions links each invariant to its row, and each finding to its note.
func newMentions(r RunReport) mentions {
	m := mentions{}
	for _, i := range r.Invariants {
		m[i.Name] = "#" + i.Name
	}
	for _, n := range r.Findings {
		m[strconv.Itoa(n.Number)] = fmt.Sprintf("#finding-%d", n.Number)
	}
	return m
}

var (
	// mention is what may be linked: findings, as [RunReport.attribution] and other texts name them,
	// or a name.
	mention = regexp.MustCompile(`\b[Ff]indings? [0-9]+(?:(?:, | and )[0-9]+)*\b|\b[A-Z][A-Za-z]+\b`)
	// mentionOne is one finding in such a text. The first one is linked with its noun.
	mentionOne = regexp.MustCompile(`(?:[Ff]inding )?([0-9]+)|[A-Z][A-Za-z]+$`)
)

// in divides a text into linked and other parts.
func (m mentions) in(text string) (parts []part) {
	done := 0
	for _, at := range mention.FindAllStringIndex(text, -1) {
		for _, one := range mentionOne.FindAllStringSubmatchIndex(text[at[0]:at[1]], -1) {
			start, end, name := at[0]+one[0], at[0]+one[1], text[at[0]+one[0]:at[0]+one[1]]
			if one[2] >= 0 {
				name = text[at[0]+one[2] : at[0]+one[3]]
			}
			link, ok := m[name]
			if !ok {
				continue
			}
			if start > done {
				parts = append(parts, part{Text: text[done:start]})
			}
			parts = append(parts, part{text[start:end], link})
			done = end
		}
	}
	if done < len(text) {
		parts = append(parts, part{Text: text[done:]})
	}
	return parts
}
