package reports

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/golden"
)

const denied = "error: the server doesn't have a resource type \"clustertrustbundles\""

// smallClients has three operations of two programs; those of index 0 and 2 cross.
func smallClients() ClientsTable {
	operations := []ClientOperation{
		{Program: "kubectl", Name: "get", Sentence: "It prints the object.", Crosses: true},
		{Program: "kubectl", Name: "delete --wait", Sentence: "It is gone.", Controllers: true},
		{Program: "client-go", Name: "dynamic informer", Sentence: "It tells of the change.", Crosses: true},
	}
	var cells []ClientCell
	for _, client := range []string{"v1.36.3", "v1.37.1"} {
		cells = append(cells,
			ClientCell{"get", "direct", client, DidWork, ""}, ClientCell{"get", "none", client, DidNotWork, denied},
			ClientCell{"get", "builtin", client, DidWork, ""}, ClientCell{"get", "reference", client, DidWork, ""},
			ClientCell{"delete --wait", "direct", client, DidNotRun, "controllers take part"},
			ClientCell{"delete --wait", "none", client, DidWork, ""},
			ClientCell{"delete --wait", "reference", client, DidWork, ""},
		)
	}
	cells = append(cells, ClientCell{"delete --wait", "builtin", "v1.36.3", DidNotWork, "it is | <still> there"},
		ClientCell{"delete --wait", "builtin", "v1.37.1", DidWork, ""})
	cells = append(cells,
		ClientCell{"dynamic informer", "direct", "v0.36.3", DidWork, ""},
		ClientCell{"dynamic informer", "none", "v0.36.3", DidNotWork, "error: not found"},
		ClientCell{"dynamic informer", "builtin", "v0.36.3", DidWork, ""}, ClientCell{"dynamic informer", "reference", "v0.36.3", DidWork, ""},
	)
	metadata := ClientsMetadata{
		Made: Made{time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), 320, "v0.1.0"}, From: "v1.36.3",
		To:       "v1.37.1",
		Complete: true, Tested: testedForTests(),
	}
	t := NewClientsTable(metadata, []ClientProgram{{"kubectl", []string{"v1.36.3", "v1.37.1"}}, {"client-go", []string{"v0.36.3"}}},
		operations, cells)
	t.Reproduce, t.Environment = "skewproof clients", []string{"2 CPUs"}
	return t
}

func TestClientsGolden(t *testing.T) {
	table := smallClients()
	holdTables(t, table)
	golden.Hold(t, "testdata/clients.md", table.documentation())
	golden.Hold(t, "testdata/clients-schema.txt", strings.Join(schema(reflect.TypeFor[ClientsTable](), ""), "\n")+"\n")
}

// holdTables holds the page and the text of a document that is shown as tables.
func holdTables(t *testing.T, d Tables) {
	t.Helper()
	dir := t.TempDir()
	if err := SaveTables(dir, d); err != nil {
		t.Fatal(err)
	}
	for _, ending := range []string{".html", ".txt"} {
		name := strings.TrimSuffix(d.page().Document, ".json") + ending
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		golden.Hold(t, filepath.Join("testdata", name), string(content))
	}
}

func TestReadClientsRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := SaveTables(dir, smallClients()); err != nil {
		t.Fatal(err)
	}
	saved, err := os.ReadFile(filepath.Join(dir, ClientsJSON))
	if err != nil {
		t.Fatal(err)
	}
	for old, altered := range map[string]string{
		`"result": "passed"`: `"result": "failed"`, `"did": "works"`: `"did": "worked"`, `"path": "direct"`: `"path": "detour"`,
		`"client": "v1.36.3"`: `"client": "v1.37.1"`, `"reason": "controllers take part"`: `"reason": " "`,
		`"program": "client-go"`: `"program": "kubectl"`,
	} {
		text := bytes.Replace(saved, []byte(old), []byte(altered), 1)
		if bytes.Equal(text, saved) {
			t.Fatalf("%s is not in the document", old)
		}
		if err := os.WriteFile(filepath.Join(dir, "altered.json"), text, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadClients(filepath.Join(dir, "altered.json")); err == nil {
			t.Errorf("with %s it is read", altered)
		}
	}
}

// A table passes only if it could have failed and nothing is missing.
func TestClientsConclusion(t *testing.T) {
	set := func(operation, path string, did Did) func(*ClientsTable) {
		return func(t *ClientsTable) { t.Cells[t.index(operation, path, "v1.37.1")].Did = did }
	}
	for name, c := range map[string]struct {
		change func(*ClientsTable)
		want   Result
		says   string
	}{
		"as it should be":               {func(*ClientsTable) {}, ResultPassed, "0 of 5 operations fail; through builtin 1"},
		"builtin alone fails":           {set("get", "builtin", DidNotWork), ResultPassed, "through builtin 2"},
		"the reference fails":           {set("get", "reference", DidNotWork), ResultFailed, "1 of 5 operations"},
		"the reference was not run":     {set("get", "reference", DidNotRun), ResultInconclusive, "1 that the result needs were not run"},
		"kubectl itself cannot":         {set("get", "direct", DidNotWork), ResultPassed, "1 fail at the newer server itself"},
		"nothing shows that it can":     {set("get", "direct", DidNotRun), ResultInconclusive, "1 that the result needs were not run"},
		"a blind control":               {set("get", "none", DidWork), ResultInconclusive, "the control is blind"},
		"the control was not run":       {set("get", "none", DidNotRun), ResultInconclusive, "were not run"},
		"builtin was not run":           {set("get", "builtin", DidNotRun), ResultPassed, "0 of 5"},
		"what need not cross fails":     {set("delete --wait", "none", DidNotWork), ResultPassed, "0 of 5"},
		"it was ended early":            {func(t *ClientsTable) { t.Metadata.Complete = false }, ResultInconclusive, "0 of 5"},
		"nothing crosses":               {func(t *ClientsTable) { t.Operations[0].Crosses, t.Operations[2].Crosses = false, false }, ResultInconclusive, "nothing shows that they could have failed"},
		"nothing is there":              {func(t *ClientsTable) { t.Operations = nil }, ResultInconclusive, "nothing shows"},
		"kubectl cannot, nor reference": {func(t *ClientsTable) { set("get", "direct", DidNotWork)(t); set("get", "reference", DidNotWork)(t) }, ResultPassed, "0 of 4"},
	} {
		t.Run(name, func(t *testing.T) {
			table := smallClients()
			c.change(&table)
			if result, said := table.conclusion(); result != c.want || !strings.Contains(said, c.says) {
				t.Errorf("%s (%s), want %s (%s)", result, said, c.want, c.says)
			}
		})
	}
}

// A cell that was not tried looks like a cell that did not work.
func TestWhatWasNotRunIsShownAsSuch(t *testing.T) {
	full := smallClients()
	table := NewClientsTable(full.Metadata, full.Clients, full.Operations, nil)
	if table.Result != ResultInconclusive || len(table.Cells) != (2*2+1)*len(ClientPaths) {
		t.Fatalf("%s with %d cells", table.Result, len(table.Cells))
	}
	page := table.documentation()
	if strings.Contains(page, "| works") || !strings.Contains(page, "| not run |") {
		t.Errorf("what was not run looks as if it had worked:\n%s", page)
	}
}
