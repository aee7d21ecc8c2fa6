package reports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every field of a document that others read must say what it holds, in its own comment or by name
// in the comment of another field of the same type.
func TestEveryFieldOfADocumentIsDocumented(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fields := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			declared, ok := n.(*ast.TypeSpec)
			if !ok || !declared.Name.IsExported() {
				return true
			}
			structure, ok := declared.Type.(*ast.StructType)
			if !ok {
				return true
			}
			said := ""
			for _, f := range structure.Fields.List {
				said += f.Doc.Text()
			}
			for _, f := range structure.Fields.List {
				if f.Tag == nil || !strings.Contains(f.Tag.Value, "json:") {
					continue
				}
				for _, name := range f.Names {
					fields++
					if !regexp.MustCompile(`\b` + name.Name + `\b`).MatchString(said) {
						t.Errorf("%s: no comment says what %s.%s holds", file, declared.Name.Name, name.Name)
					}
				}
			}
			return true
		})
	}
	if fields < 100 {
		t.Errorf("only %d fields were looked at", fields)
	}
}
