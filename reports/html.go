package reports

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"

	"github.com/skewproof/skewproof/internal/invariant"
)

//go:embed assets
var assets embed.FS

var page = template.Must(template.New("report.html.tmpl").Funcs(template.FuncMap{
	"clock":   clock,
	"lasting": lasting,
	"grouped": grouped,
	"counted": counted,
	"times":   times,
	"sign":    sign,
	"capital": capital,
	"next":    func(n int) int { return n + 1 },
}).ParseFS(assets, "assets/*.tmpl"))

// document is what the template is given: the report, and what is laid out beforehand.
type document struct {
	RunReport
	Chart      chart
	Matrix     []matrixSection
	Violations []violated
	Style      template.CSS
	Script     template.JS
	Policy     string
	Files      struct{ JSON, JUnit string }
}

// violated is a failed invariant; Shown is its evidence, and Hidden how many kinds of violations that leaves out.
type violated struct {
	Invariant
	Decides bool
	Shown   []instance
	Hidden  int
}

// instance is a piece of evidence with what was going on at the first violation.
type instance struct {
	Evidence
	Meanwhile string
}

// WriteHTML writes the report as one self-contained page: it loads nothing, and it is whole without scripts.
//
// Every string of a report is taken for hostile, since servers under test wrote some of them: html/template escapes
// them, and a content security policy that names the page's own style and script by hash forbids everything else.
func WriteHTML(w io.Writer, r RunReport) error {
	style, err := assets.ReadFile("assets/report.css")
	if err != nil {
		return err
	}
	script, err := assets.ReadFile("assets/report.js")
	if err != nil {
		return err
	}
	d := document{
		RunReport: r, Chart: newChart(r), Matrix: newMatrix(r),
		Style: template.CSS(style), Script: template.JS(script),
		Policy: "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + source(style) + "; script-src " + source(script),
	}
	d.Files.JSON, d.Files.JUnit = JSONFile, JUnitFile
	for _, i := range r.Invariants {
		if i.Verdict == invariant.OutcomeFail {
			v := violated{Invariant: i, Decides: r.Decides(i), Hidden: max(0, i.Kinds-len(i.Evidence))}
			for _, e := range i.Evidence {
				v.Shown = append(v.Shown, instance{e, circumstances(r, e.FirstSeconds, e.FirstSeconds)})
			}
			d.Violations = append(d.Violations, v)
		}
	}
	// The page is small; a template error must not leave half of it in w.
	var b bytes.Buffer
	if err := page.Execute(&b, d); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// source is the hash source of an inline block (Content Security Policy Level 3, "Source Lists").
func source(block []byte) string {
	sum := sha256.Sum256(block)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
