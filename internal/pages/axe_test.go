package pages

import (
	_ "embed"

	"github.com/chromedp/chromedp"
)

// axe is axe-core 4.14.1, the file of its npm package, unchanged; testdata/axe has its licences.
//
//go:embed testdata/axe/axe.min.js
var axe string

// accessible returns the objections of axe-core. Its rules are those of WCAG 2.2 up to level AA,
// and good practice: all content is in a landmark, for example. In the dark only colours differ.
// axe-core runs in the context of the tests, so the page's policy stays as it is.
func accessible(p *tab, dark bool) []string {
	p.t.Helper()
	rules := `{ type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }`
	if dark {
		rules = `{ type: "rule", values: ["color-contrast"] }`
	}
	evaluate[chromedp.Void](p, axe)
	return evaluate[[]string](p, `axe.run(document, { iframes: false, resultTypes: ["violations"], runOnly: `+rules+` }).then((found) =>
		found.violations.flatMap((rule) => rule.nodes.slice(0, 3).map((n) =>
			rule.id + ": " + n.target.join(" ") + ": " + (n.failureSummary || rule.help).split("\n").slice(1).map((s) => s.trim()).join("; ") +
			(rule.nodes.length > 3 ? " (" + rule.nodes.length + " elements)" : ""))))`)
}
