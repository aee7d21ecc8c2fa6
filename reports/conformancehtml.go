package reports

import (
	"bytes"
	"html/template"
	"io"

	"github.com/skewproof/skewproof/internal/invariant"
)

// ConformanceHTML is the name of the page of a conformance report.
const ConformanceHTML = "conformance.html"

var conformancePage = template.Must(template.New("conformance.html.tmpl").Funcs(template.FuncMap{
	"sign":     sign,
	"capital":  capital,
	"sentence": sentence,
	"clock":    clock,
	"lasting":  lasting,
	"outcome":  func(r Result) invariant.Outcome { return outcomes[r] },
}).ParseFS(assets, "assets/conformance/*.tmpl"))

// conformanceDocument is what the template is given.
type conformanceDocument struct {
	ConformanceReport
	Lists       []conformanceList
	Style       template.CSS
	Policy      string
	YAML, JUnit string
}

// conformanceList names the scenarios that came to one result, for those who look for nothing else.
type conformanceList struct {
	Title string
	Names []string
}

// WriteConformanceHTML writes the report as one self-contained page, under the rules of [WriteHTML]. It has no script at all. Its links lead to
// the reports of the runs beside it.
func WriteConformanceHTML(w io.Writer, c ConformanceReport) error {
	var style []byte
	for _, name := range []string{"assets/report.css", "assets/conformance/conformance.css"} {
		part, err := assets.ReadFile(name)
		if err != nil {
			return err
		}
		style = append(style, part...)
	}
	d := conformanceDocument{
		ConformanceReport: c, Style: template.CSS(style), YAML: ConformanceFile, JUnit: JUnitFile,
		Policy: "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + source(style),
	}
	for _, list := range []struct {
		title string
		of    func(ConformanceScenario) bool
	}{
		{"Failed", func(s ConformanceScenario) bool { return c.counts(s, ResultFailed) }},
		{"Inconclusive", func(s ConformanceScenario) bool { return c.counts(s, ResultInconclusive) && !c.counts(s, ResultFailed) }},
		{"Not run", func(s ConformanceScenario) bool { return s.Core.Reason == NotReached }},
	} {
		if names := c.named(list.of); len(names) > 0 {
			d.Lists = append(d.Lists, conformanceList{list.title, names})
		}
	}
	var b bytes.Buffer
	if err := conformancePage.Execute(&b, d); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// counts reports whether a scenario came to a result in a profile that counts.
func (c ConformanceReport) counts(s ConformanceScenario, r Result) bool {
	return s.Core.Result == r || c.Metadata.Strict && s.Extended.Result == r
}

// named are the names of the scenarios of which something is true.
func (c ConformanceReport) named(of func(ConformanceScenario) bool) []string {
	var names []string
	for _, s := range c.Scenarios {
		if of(s) {
			names = append(names, s.Name)
		}
	}
	return names
}
