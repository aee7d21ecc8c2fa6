package pages

import (
	_ "embed"
	"slices"
	"strings"
	"testing"
)

//go:embed testdata/honest.html
var honest string

// A check that finds nothing proves something only if it finds the fault in a spoiled page.
func TestChecksFindWhatTheyAreFor(t *testing.T) {
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		mustHold(t, saved(t, []byte(honest)))
	})
	const end = "</main>"
	script := func(code string) string { return end + "<script>" + code + "</script>" }
	for _, c := range []struct {
		fault     string
		old, with string // what replaces what
		check     string // the check that must find it
		says, not string // in a complaint, and in none
	}{
		{"a message of an error", end, script(`console.error("it is broken")`), checkConsole, "it is broken", "without scripts"},
		{"a warning", end, script(`console.warn("it is old")`), checkConsole, "it is old", "without scripts"},
		{"a script that throws", end, script(`null.length`), checkConsole, "TypeError", "without scripts"},
		{"a script that throws later", end, script(`addEventListener("load", () => Promise.reject(new Error("late")))`),
			checkConsole, "late", "without scripts"},
		{"a style that the policy forbids", "<title>", `<meta http-equiv="Content-Security-Policy" content="default-src 'none'"><title>`,
			checkConsole, "Content Security Policy", ""},
		{"an image from elsewhere", end, `<img src="http://127.0.0.1:1/x.png" alt="">` + end, checkRequests, "127.0.0.1:1/x.png", ""},
		{"a style sheet from elsewhere", "<style>", `<style>@import "http://127.0.0.1:1/x.css";`, checkRequests, "127.0.0.1:1/x.css", ""},
		{"a script that asks", end, script(`fetch("http://127.0.0.1:1/x").catch(() => {})`), checkRequests, "127.0.0.1:1/x", "without scripts"},
		{"a dead link", "#part", "#no-part", checkLinks, "#no-part", ""},
		{"an id that occurs twice", "<p>", `<p id="part">`, checkIDs, "part occurs 2 times", ""},
		{"an element that is too wide", "<p>", `<p style="width: 600px">`, checkWidth, "<p>", "1400"},
		{"a region that only a mouse can scroll", "<p>", `<div style="overflow-x: auto"><p style="width: 600px">wide</p></div><p>`,
			checkWidth, "keyboard", "1400"},
		{"a table that a narrow window lacks", "</style>", "@media (max-width: 720px) { table { display: none; } }</style>",
			checkNarrow, "<table>", "1400"},
		{"a chart that a script shows", "<svg ", `<svg visibility="hidden" `, checkScripts, "A chart", "with scripts"},
		{"pale text", "<p>", `<p style="color: #999; background: #fff">`, checkAccess, "color-contrast", ""},
		{"text that is pale in the dark", "</style>", "@media (prefers-color-scheme: dark) { p { color: #333; background: #000; } }</style>",
			checkAccess, "color-contrast", "light"},
		{"pale text in what is folded away", end,
			`<details><summary>More</summary><p style="color: #999; background: #fff">pale</p></details>` + end, checkAccess, "color-contrast", ""},
		{"no landmark", "<main>", "<main hidden></main><div>", checkAccess, "region", ""},
		{"a picture without a name", ` aria-label="A chart"`, "", checkAccess, "svg-img-alt", ""},
		{"a button without a name", end, `<button type="button"></button>` + end, checkAccess, "button-name", ""},
		{"no language", ` lang="en"`, "", checkAccess, "html-has-lang", ""},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			spoiled := strings.Replace(honest, c.old, c.with, 1)
			if c.check == checkScripts {
				spoiled = strings.Replace(spoiled, end, script(`document.querySelector("svg").removeAttribute("visibility")`), 1)
			}
			views := light
			if strings.Contains(c.fault, "dark") {
				views = all
			}
			found := inspect(t, saved(t, []byte(spoiled)), views, c.check == checkAccess)[c.check]
			if !slices.ContainsFunc(found, func(s string) bool { return strings.Contains(s, c.says) }) {
				t.Errorf("no complaint of %q says %q: %q", c.check, c.says, found)
			}
			if c.not != "" && slices.ContainsFunc(found, func(s string) bool { return strings.Contains(s, c.not) }) {
				t.Errorf("a complaint of %q says %q: %q", c.check, c.not, found)
			}
		})
	}
}
