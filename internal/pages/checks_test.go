package pages

import (
	_ "embed"
	"fmt"
	"slices"
	"testing"
)

//go:embed testdata/checks.js
var checks string

// The names of the checks.
const (
	checkConsole  = "console"  // it writes no warning and no error, and throws nothing
	checkRequests = "requests" // it asks for nothing but itself
	checkLinks    = "links"    // links to the page itself lead somewhere
	checkIDs      = "ids"      // no id occurs twice
	checkWidth    = "width"    // only what is in a scrolling region is wider than the window
	checkNarrow   = "narrow"   // a narrow window shows all that a wide one shows
	checkScripts  = "scripts"  // without scripts nothing is missing
	checkAccess   = "access"   // axe-core has no objection
)

// troubles are complaints about a page, by check.
type troubles map[string][]string

func (x troubles) add(check string, v view, complaints []string) {
	for _, c := range complaints {
		x[check] = append(x[check], fmt.Sprintf("%s (%s)", c, v))
	}
}

// ask calls a function of checks.js.
func ask(p *tab, call string) []string {
	p.t.Helper()
	return evaluate[[]string](p, fmt.Sprintf("(%s).%s", checks, call))
}

const wide, medium, narrow = 1400, 1000, 420

// light are the views in light colours. The first one shows everything. In the dark only colours
// differ, so there are fewer of these.
var (
	light = []view{{wide, false, true}, {wide, false, false}, {medium, false, true}, {narrow, false, true}, {narrow, false, false}}
	all   = append(light[:len(light):len(light)], view{wide, true, true}, view{narrow, true, true})
)

// inspect opens a page in the views and returns all that is wrong with it. If access is true, it
// also asks axe-core, which takes most of the time.
func inspect(t testing.TB, file string, views []view, access bool) troubles {
	t.Helper()
	found := troubles{}
	var whole []string // what a wide window shows, with scripts
	p := newTab(t)
	for _, v := range views {
		p.show(file, v)
		ask(p, "unfold()")
		found.add(checkLinks, v, ask(p, "links()"))
		found.add(checkIDs, v, ask(p, "ids()"))
		found.add(checkWidth, v, ask(p, fmt.Sprintf("width(%d)", v.width)))
		shown := ask(p, "shown()")
		missing := slices.DeleteFunc(slices.Clone(whole), func(s string) bool { return slices.Contains(shown, s) })
		switch {
		case v.width == wide && v.scripts:
			whole = shown
		case v.width == wide:
			found.add(checkScripts, v, missing)
		default:
			found.add(checkNarrow, v, missing)
		}
		if access {
			found.add(checkAccess, v, accessible(p, v.dark))
		}
		console, requests := p.heard()
		found.add(checkConsole, v, console)
		found.add(checkRequests, v, requests)
	}
	return found
}
