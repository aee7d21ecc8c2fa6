package reports

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
)

//go:embed assets
var assets embed.FS

// asset is the content of an embedded file.
func asset(name string) []byte {
	content, err := assets.ReadFile("assets/" + name)
	if err != nil { // the names are constant
		panic(err)
	}
	return content
}

// newPage parses the template of a page. name is its file below assets, without ".html.tmpl".
func newPage(folder, name string) *template.Template {
	return template.Must(template.New(name+".html.tmpl").Funcs(template.FuncMap{
		"sign": sign, "capital": capital, "sentence": sentence, "firstLine": firstLine,
		"names": names, "checked": checked, "clock": clock, "moment": moment, "lasting": lasting, "grouped": grouped, "counted": counted,
		"times": times, "covered": covered,
		"identified": identified, "prose": prose,
		"next":  func(n int) int { return n + 1 },
		"count": func(n uint64) string { return grouped(int(n)) },
		"word":  Word,
	}).ParseFS(assets, "assets/"+folder+"*.tmpl", "assets/shared/*.tmpl"))
}

// head is the head of a page: its style, its script, and a policy that forbids all other styles and
// scripts.
type head struct {
	Style  template.CSS
	Script template.JS
	Policy string
}

// newHead makes the head of a page from a script (nil for none), the style of all pages and more
// style files.
func newHead(script []byte, more ...string) head {
	style := asset("report.css")
	for _, name := range more {
		style = append(style, asset(name)...)
	}
	h := head{
		Style: template.CSS(style), Script: template.JS(script), //nolint:gosec // embedded files
		Policy: "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + source(style),
	}
	if len(script) > 0 {
		h.Policy += "; script-src " + source(script)
	}
	return h
}

// source is the hash source of an inline block (Content Security Policy Level 3, "Source Lists").
func source(block []byte) string {
	sum := sha256.Sum256(block)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// writePage renders a page. It renders into memory first, because a page is small and a template
// error must not leave half a page in w. No character of a page controls a terminal or the
// direction of the text around it.
func writePage(w io.Writer, page *template.Template, document any) error {
	var b bytes.Buffer
	if err := page.Execute(&b, document); err != nil {
		return err
	}
	_, err := w.Write(bytes.Map(printable, b.Bytes()))
	return err
}

var (
	runPage = newPage("", "report")
	runHead = newHead(append(asset("report.js"), asset("chart.js")...))
)

// runDocument is the input of the template of a run: the report and its computed layout.
type runDocument struct {
	RunReport
	head
	Chart      chart
	Speed      *speedChart // nil if nothing was measured
	Figures    []laneFigures
	Peered     peerList
	Omitted    omitted
	Matrix     []matrixSection
	Violations violationsView
	Groups     invariantGroups
	Links      map[string]string // from the name of a failed invariant to its first card
	Files      struct{ JSON, JUnit string }
}

// invariantRow is a row of the table of invariants. Link leads to the violations, if there are any.
type invariantRow struct {
	Invariant
	Decides bool
	Link    string
	Told    []part // how many of the violations are known
}

// Rows are the rows of a table of invariants.
func (d runDocument) Rows(all []Invariant) []invariantRow {
	var out []invariantRow
	for _, i := range all {
		out = append(out, invariantRow{i, d.RunReport.Decides(i), d.Links[i.Name], d.Linked(capital(i.Accounted()))})
	}
	return out
}

// Linked links what a text names to what the page says about it.
func (d runDocument) Linked(text string) []part { return newMentions(d.RunReport).in(text) }

// at is the time of the violation that is shown.
func (e Evidence) at() Seconds {
	if len(e.Requests) > 0 {
		return e.Requests[0].StartSeconds
	}
	return e.FirstSeconds
}

// WriteHTML writes the report as one self-contained page. The page loads nothing and needs no
// scripts.
//
// Servers under test wrote some of the strings, so WriteHTML treats all strings as hostile.
// html/template escapes them, and a content security policy allows only the page's own style and
// script, by hash.
func WriteHTML(w io.Writer, r RunReport) error {
	d := runDocument{
		RunReport: r, head: runHead, Chart: newChart(r), Matrix: newMatrix(r), Violations: newViolations(r), Groups: newInvariantGroups(r),
		Links: map[string]string{},
	}
	d.Files.JSON, d.Files.JUnit = JSONFile, JUnitFile
	d.Figures, d.Peered = newFigures(r), newPeerList(r)
	if c, ok := newSpeedChart(r); ok {
		d.Speed = &c
	}
	of := newCardOf(r)
	for _, name := range r.Verdict.Failed {
		d.Links[name] = of.link(name, 0)
	}
	d.RunReport, d.Omitted = bounded(r)
	return writePage(w, runPage, d)
}
