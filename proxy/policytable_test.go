package proxy

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/policies.md anew")

const policiesPage = "../docs/policies.md"

// TestPolicyTable keeps the page that lists every switch with its meaning and its value in every preset.
func TestPolicyTable(t *testing.T) {
	page := policyTable(t)
	if *update {
		if err := os.WriteFile(policiesPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	there, err := os.ReadFile(policiesPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(there) != page {
		t.Errorf("%s is not what the policies say; run: go test ./proxy -run TestPolicyTable -update", policiesPage)
	}
}

func policyTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# Policies\n\nThe places in which released kube-apiservers and the reference differ are switches of `proxy.Policy`, one each. " +
		"This page is made from the source\n(`go test ./proxy -run TestPolicyTable -update`).\n\n" +
		"`upstream-1.37` is held to the real upstream code, which both are driven through random histories in virtual time by `TestBehavesLikeUpstream`; the\nolder presets " +
		"differ from it by the switches shown, as read in the source of the versions that they name (of v1.36.3 the files of the proxy are those of v1.37.1, byte for byte).\n\n" +
		"No switch covers what is the same under every preset here, and not quite as upstream does it: X-Forwarded-Host, -Proto and -Uri are not added on the\nhop and HTML answers are " +
		"not rewritten; Accept-Encoding is always explicit; a client may not upgrade to another HTTP (h2c); an identity that headers cannot\ncarry unchanged is 403, a missing one 500 " +
		"(upstream: an empty 200); informational answers (1xx) are passed on.\n")
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
			fmt.Fprintf(&b, "| %s |", section.Type.Field(j).Name)
			for _, p := range Presets() {
				fmt.Fprintf(&b, " %s |", cell(reflect.ValueOf(p).Field(i).Field(j).Interface()))
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
		for j := range section.Type.NumField() {
			name := section.Type.Field(j).Name
			if comment := comments[section.Type.Name()+"."+name]; comment != "" {
				fmt.Fprintf(&b, "- %s\n", comment)
			}
		}
	}
	return b.String()
}

func cell(v any) string {
	switch v := v.(type) {
	case bool:
		if v {
			return "yes"
		}
		return ""
	case ExtensionPolicy:
		return [...]string{"ignored", "cut out", "filtered", "exact"}[v]
	case time.Duration:
		if v == 0 {
			return ""
		}
	case string:
		if v != "" {
			return "`" + strings.Join(strings.Split(v, ","), "` `") + "`"
		}
	}
	if text := fmt.Sprint(v); text != "0" && text != "0s" {
		return text
	}
	return ""
}

// fieldComments are the comments of the policy's fields, by "Struct.Field", on one line each. A comment above several fields is that of the first.
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
