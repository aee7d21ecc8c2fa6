package findings

import "strings"

// Goal is a goal of KEP-4020, which does not number its goals.
type Goal struct {
	// Name is the name in Finding.Demands. Demands says what the goal demands.
	Name, Demands string
}

// Goals are the goals of KEP-4020 that Finding.Demands can name.
var Goals = []Goal{
	{"G1", "if an apiserver can serve a request, this apiserver handles it"},
	{"G2", "if the apiserver that can serve a request cannot be reached, the answer is 503, not 404"},
	{"G3", "discovery reports the same resources at every server"},
	{"G4", "clients can access everything that discovery lists"},
}

// Section is a part of the description of a finding, as its page in docs/findings and
// 'skewproof finding' show it. It has rows, a text or a list.
type Section struct {
	// Title is empty for the first sections.
	Title string
	Rows  []Row
	Text  string
	List  []string
}

// Row is a fact about a finding.
type Row struct {
	What  string
	Words []string
	// Are says what the words are.
	Are Words
}

// Words says what the words of a row are. Each rendering marks them in its own way.
type Words int

// These are all kinds of words.
const (
	Prose Words = iota
	Demand
	Code
	ScenarioName
)

// Sections describes the finding. Sections and rows for which the finding has no text are left out.
func (f Finding) Sections() []Section {
	all := []Section{
		{Text: f.Symptom},
		{Rows: rows(
			Row{"KEP-4020", f.Demands, Demand},
			Row{"grade", []string{string(f.Grade)}, Prose},
			Row{"class", []string{f.Class.String()}, Prose},
			Row{"disclosure", []string{string(f.Disclosure)}, Prose},
			Row{"affected", []string{f.Upgrade.affected()}, Prose},
			Row{"seen", []string{f.Versions}, Prose},
			Row{"command that shows it", []string{f.Reproduce}, Code},
			Row{"scenarios that show it", f.Scenarios, ScenarioName},
			Row{"may be absent from a run", []string{f.Chance}, Prose},
			Row{"switches of the reference that remove it", f.Switches, Code},
		)},
		{Title: "Impact", Text: f.Impact},
		{Title: "How to avoid it", Text: f.Avoid},
	}
	if u := f.Upgrade; u != nil {
		all = append(all, Section{Title: "In an upgrade", Rows: rows(
			Row{"when", []string{u.When}, Prose},
			Row{"deleted", []string{u.Deleted}, Prose},
			Row{"hangs or stays behind", []string{u.Hangs}, Prose},
			Row{"who notices", []string{u.Noticed}, Prose},
			Row{"for how long", []string{u.Lasts}, Prose},
		)})
	}
	all = append(all, Section{Title: "Cause", Text: f.Cause}, Section{Title: "How it was confirmed", Text: f.Confirmed},
		Section{Title: "Upstream", List: f.Upstream})
	var told []Section
	for _, s := range all {
		if len(s.Rows) > 0 || s.Text != "" || len(s.List) > 0 {
			told = append(told, s)
		}
	}
	return told
}

// affected says which versions have the defect.
func (u *Upgrade) affected() string {
	switch {
	case u == nil:
		return ""
	case u.Until == "":
		return "from v" + u.Since + " on"
	case u.Until == u.Since:
		return "v" + u.Since
	default:
		return "v" + u.Since + " to v" + u.Until
	}
}

// rows leaves out rows without words, and puts the text of the others in one line.
func rows(all ...Row) (kept []Row) {
	for _, r := range all {
		var words []string
		for _, w := range r.Words {
			if w = strings.Join(strings.Fields(w), " "); w != "" {
				words = append(words, w)
			}
		}
		if r.Words = words; len(words) > 0 {
			kept = append(kept, r)
		}
	}
	return kept
}
