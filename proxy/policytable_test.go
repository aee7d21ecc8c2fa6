package proxy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/skewproof/skewproof/internal/golden"
)

const policiesPage = "../docs/policies.md"

// TestPolicyTable keeps the page that lists every switch with its meaning and its value in every
// preset.
func TestPolicyTable(t *testing.T) {
	golden.Hold(t, policiesPage, policyTable(t))
}

// head is the beginning of the page. It cannot be a raw string, because it has code spans.
const head = "# Policies\n\n" +
	"The places in which released kube-apiservers and the reference differ are switches of `proxy.Policy`, one each. This\n" +
	"page is made from the source (`go test ./proxy -run TestPolicyTable -update`).\n\n" +
	"`upstream-1.37` is held to the real upstream code: `TestBehavesLikeUpstream` drives it and the real upstream code\n" +
	"through the same random histories in virtual time. The older presets differ from it by the switches shown, as read in\n" +
	"the source of the versions that they name. Of v1.36.3 pkg/util/peerproxy of k8s.io/apiserver is that of v1.37.1, byte\n" +
	"for byte; in pkg/endpoints/discovery/aggregated four files differ, by CBOR and by when metrics are registered.\n\n" +
	"A user may sensibly choose every switch but those under Quirks, which reproduce mistakes of releases.\n\n" +
	"Switches stand here as `skewproof explore --change SWITCH=VALUE` takes them. An empty cell is false, 0, 0s or nothing.\n\n"

// unlike lists the differences that no switch covers. TestListedDifferencesAreThere shows the
// differences of the first two lists, except where the text names another reason. The tests in
// unmodelled_test.go show the first difference of the third list.
const unlike = `No switch covers what is the same under every preset here, and not quite as upstream does it.

Requests that are passed on:

- X-Forwarded-Host, -Proto and -Uri are not added; Accept-Encoding is always explicit; the trailer of a request is
  dropped.
- No header that begins with X-Remote- is passed on, whatever follows; a Connection header cannot take the Audit-ID
  away.
- HTML is not rewritten, nor is Location (upstream: to the peer's own address). What a filter of this server has set
  (Audit-ID, Cache-Control) does not stand twice in the answer. An informational answer (1xx) takes no header away that
  a filter has set; this is not compared.
- An identity that headers cannot carry unchanged is 403, a missing one 500 (upstream: an empty 200). A client that
  breaks off its body is 400, one whose time is over 504 (upstream: 503, if anybody still reads it).
- CONNECT asks for no resource. A client may not upgrade to another HTTP (h2c); upgrades are not compared, as upstream
  dials for them itself.

Merged discovery:

- It answers GET and HEAD (upstream: every method). Vary names Accept-Encoding as well, and bodies are compressed from 4
  KiB on (upstream: 128).
- Every encoding has an entity tag of its own (upstream: that of the JSON for all). If-None-Match may be a list, weak,
  or "*".

What upstream does and no preset:

- When the last custom resource of a group is deleted, the merged document keeps the group until something else changes.
  Only the peers' documents are filtered again then, if there are any. In a kube-apiserver the group's APIService goes
  too, and that makes the document anew (finding 10).
- It looks for graces that have ended at every event of a definition or an APIService, the presets at those that change
  what exists: up to five minutes later.
- Its merged document has at once whatever changes in the local server's own; the presets have it when they are told
  (proxy.LocalFetched). In a kube-apiserver with custom resources or aggregated APIs, their controllers make both anew
  every few minutes, whatever StaleWhenAlone says.
- When several leases exist at its start, how many of them the first round of fetches sees is a race.
`

func policyTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString(head + unlike)
	comments := fieldComments(t)
	policy := reflect.TypeFor[Policy]()
	for i := range policy.NumField() {
		section := policy.Field(i)
		if section.Type.Kind() != reflect.Struct {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| switch |", section.Name)
		for _, p := range Presets() {
			fmt.Fprintf(&b, " %s |", p.Name)
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(Presets())) + "\n")
		for j := range section.Type.NumField() {
			fmt.Fprintf(&b, "| %s.%s |", section.Name, section.Type.Field(j).Name)
			for _, p := range Presets() {
				fmt.Fprintf(&b, " %s |", cell(reflect.ValueOf(p).Field(i).Field(j).Interface()))
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
		for j := range section.Type.NumField() {
			name := section.Type.Field(j).Name
			if comment := comments[section.Type.Name()+"."+name]; comment != "" {
				b.WriteString(item(docLink.ReplaceAllString(comment, "$1")))
			}
		}
	}
	return b.String()
}

// docLink matches a link in a Go comment, such as [Table.Crashed].
var docLink = regexp.MustCompile(`\[([A-Z][\w.]*)\]`)

// item returns a text as a list item, in lines of up to 120 characters.
func item(text string) string {
	var b strings.Builder
	line := "-"
	for _, word := range strings.Fields(text) {
		if utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > 120 {
			b.WriteString(line + "\n")
			line = " "
		}
		line += " " + word
	}
	return b.String() + line + "\n"
}

func cell(v any) string {
	switch v := v.(type) {
	case bool:
		if v {
			return "yes"
		}
		return ""
	case ExtensionPolicy:
		return v.String()
	case time.Duration:
		if v == 0 {
			return ""
		}
	case string:
		if v != "" {
			return "`" + strings.Join(strings.Split(v, ","), "`,`") + "`"
		}
	}
	if text := fmt.Sprint(v); text != "0" && text != "0s" {
		return text
	}
	return ""
}

// fieldComments returns the comments of the policy's fields by "Struct.Field", each on one line. A
// comment above several fields belongs to the first of them.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "policy.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range s.Fields.List {
				for i, name := range field.Names {
					if i == 0 {
						comments[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
					}
				}
			}
		}
		return true
	})
	return comments
}
