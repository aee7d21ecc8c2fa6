package reports

import (
	"bytes"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// hostile breaks out of every context in which an unescaped string could be.
const hostile = `</script></style></title><script>alert(1)</script><img src=x onerror=alert(1)>"'><svg/onload=alert(1)>{{.}}` + "`${1}`" +
	`javascript:alert(1)`

// poison replaces every string in a report, except strings that must come from a fixed set.
func poison(v reflect.Value, s string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			poison(v.Elem(), s)
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i), s)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				poison(v.Field(i), s)
			}
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			v.SetString(s)
		}
	}
}

// parsed is the parsed page of a document.
func parsed[T any](t *testing.T, write func(io.Writer, T) error, document T) *html.Node {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, document); err != nil {
		t.Fatal(err)
	}
	doc, err := html.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func render(t *testing.T, r RunReport) *html.Node {
	t.Helper()
	return parsed(t, WriteHTML, r)
}

// staysText checks that a page with only hostile strings has the same elements as an honest page,
// and nothing that a browser could run.
func staysText(t *testing.T, honest, poisoned *html.Node) {
	t.Helper()
	names := func(doc *html.Node) []string {
		var out []string
		for _, n := range elements(doc, "") {
			out = append(out, n.Data)
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src" {
					t.Errorf("<%s> has the attribute %s=%q", n.Data, a.Key, a.Val)
				}
				if a.Key == "href" && strings.HasPrefix(strings.ToLower(a.Val), "javascript:") {
					t.Errorf("a link leads to %q", a.Val)
				}
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	if got, want := names(poisoned), names(honest); !slices.Equal(got, want) {
		t.Errorf("elements of the poisoned page are %v, want %v", got, want)
	}
	if got, want := len(elements(poisoned, "script")), len(elements(honest, "script")); got != want {
		t.Errorf("the poisoned page has %d scripts, want %d", got, want)
	}
	if !strings.Contains(text(poisoned), hostile) {
		t.Error("the string is not in the text of the page as it was")
	}
}

func elements(doc *html.Node, name string) []*html.Node {
	var out []*html.Node
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && (name == "" || n.Data == name) {
			out = append(out, n)
		}
	}
	return out
}

func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// TestPolicyAllowsOwnBlocks shows that the browser will run the page's own style and script: their
// hashes match the bytes in the page.
func TestPolicyAllowsOwnBlocks(t *testing.T) {
	doc := render(t, small())
	policy := ""
	for _, n := range elements(doc, "meta") {
		if slices.Contains(n.Attr, html.Attribute{Key: "http-equiv", Val: "Content-Security-Policy"}) {
			for _, a := range n.Attr {
				if a.Key == "content" {
					policy = a.Val
				}
			}
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none';") {
		t.Errorf("the policy is %q, want one that forbids what it does not name", policy)
	}
	for _, block := range []string{"style", "script"} {
		want := block + "-src " + source([]byte(text(elements(doc, block)[0])))
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %q does not allow the page's own %s: want %s", policy, block, want)
		}
	}
}

func TestPageLinksLeadSomewhere(t *testing.T) {
	for name, doc := range map[string]*html.Node{
		"run": render(t, small()), "campaign": renderCampaign(t, smallCampaign()), "matrix": renderMatrix(t, smallMatrix()),
		"conformance": renderConformance(t, smallConformance()),
		"ablation":    parsed(t, asHTML, smallAblation()), "smallest set": parsed(t, asHTML, smallestForTests()),
	} {
		ids := map[string]bool{}
		for _, n := range elements(doc, "") {
			for _, a := range n.Attr {
				if a.Key == "id" {
					if ids[a.Val] {
						t.Errorf("%s: the id %q occurs twice", name, a.Val)
					}
					ids[a.Val] = true
				}
			}
		}
		links := 0
		for _, n := range elements(doc, "a") {
			for _, a := range n.Attr {
				if target, ok := strings.CutPrefix(a.Val, "#"); ok && a.Key == "href" {
					links++
					if !ids[target] {
						t.Errorf("%s: a link leads to %q, which is not on the page", name, a.Val)
					}
				}
			}
		}
		if links == 0 {
			t.Errorf("%s: the page has no link to any part of itself", name)
		}
	}
}

func TestEmptyReportRenders(t *testing.T) {
	page := text(render(t, RunReport{}))
	for _, want := range []string{"The history holds no request.", "The scenario has no steps.", "No fault was injected."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of an empty report does not say %q", want)
		}
	}
}
