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

// TestPolicyPage keeps the page that lists every switch with its meaning and its value in every
// preset.
func TestPolicyPage(t *testing.T) {
	golden.Hold(t, policiesPage, policyTable(t))
}

// head is the beginning of the page. It cannot be a raw string, because it has code spans.
const head = "# Policies\n\n" +
	"Released kube-apiservers and the reference differ in the switches of `proxy.Policy`. This page is\n" +
	"made from the source (`go test ./proxy -run TestPolicyPage -update`).\n" +
	"\n" +
	"`TestBehavesLikeUpstream` compares `upstream-1.37` with the real upstream code: it drives both\n" +
	"through the same random histories in virtual time. The older presets have other values of some\n" +
	"switches, as the source of these versions shows. In k8s.io/apiserver v1.36.3 and v1.37.1 the package\n" +
	"pkg/util/peerproxy is the same, byte for byte. In pkg/endpoints/discovery/aggregated four files\n" +
	"differ: in CBOR, and in the moment at which metrics are registered.\n" +
	"\n" +
	"The switches under Quirks reproduce mistakes of releases. All others are sensible choices.\n" +
	"\n" +
	"The tables name the switches as `skewproof explore --change SWITCH=VALUE` takes them, and the flag\n" +
	"`--mixed-version-proxy-policy=PRESET,SWITCH=VALUE` of the reference's kube-apiserver. An empty cell\n" +
	"means false, 0, 0s or nothing.\n" + "\n"

// unlike lists the differences that no switch covers. TestListedDifferencesAreThere shows the
// differences of the first two lists, except where the text names another reason. The tests in
// unmodelled_test.go show the first difference of the third list.
const unlike = `Under every preset the proxy differs from upstream in the following behaviour. No switch covers it.

Requests that are forwarded:

- The proxy does not add X-Forwarded-Host, -Proto and -Uri. It always sends Accept-Encoding. It
  drops the trailer of a request.
- It forwards no header that begins with X-Remote-. A Connection header cannot remove the Audit-ID.
- It does not change HTML or Location (upstream: to the peer's own address). A header that a filter
  of this server has set (Audit-ID, Cache-Control) is in the answer once. An informational answer
  (1xx) removes no header that a filter has set; no test compares this with upstream.
- It answers 403 if headers cannot carry an identity unchanged, and 500 if there is no identity
  (upstream: an empty 200). It answers 400 if a client breaks off its body, and 504 if the time of a
  request is over (upstream: 503, if anybody still reads the answer).
- CONNECT is not a request for a resource. A client may not upgrade to another HTTP (h2c). No test
  compares upgrades with upstream, because upstream dials for them itself.

Merged discovery:

- It answers GET and HEAD (upstream: every method). Vary also names Accept-Encoding. It compresses
  bodies of 4 KiB and more (upstream: 128 KiB).
- Every encoding has its own entity tag (upstream: the tag of the JSON for all). If-None-Match may
  be a list, weak, or "*".

Only upstream does this, and no preset:

- When the last custom resource of a group is deleted, the merged document keeps the group until
  something else changes. Only the peers' documents, if there are any, are filtered again at that
  time. In a kube-apiserver the group's APIService is deleted too, and then upstream makes the
  document again (finding 10).
- At every event of a definition or an APIService, upstream searches for graces that have ended. The
  presets search only at events that change what exists, up to five minutes later.
- Upstream's merged document contains every change of the local server's own document at once. The
  presets learn of a change by an event (proxy.LocalFetched). In a kube-apiserver with custom
  resources or aggregated APIs, their controllers make both documents again every few minutes,
  whatever StaleWhenAlone says.
- If several leases exist at the start, chance decides how many of them upstream's first round of
  fetches sees.
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

// item returns a text as a list item, in lines of up to 100 characters.
func item(text string) string {
	var b strings.Builder
	line := "-"
	for _, word := range strings.Fields(text) {
		if utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > 100 {
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
	case IncompletePolicy:
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
