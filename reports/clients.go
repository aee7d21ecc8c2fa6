package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/scenario"
)

// ClientsKind identifies a table of clients, together with [APIVersion].
const ClientsKind = "ClientsTable"

// ClientsJSON is the file of a table of clients for programs.
const ClientsJSON = "clients.json"

// ClientsTable says what clients of several versions can do in a control plane of two versions.
type ClientsTable struct {
	TypeMeta
	// Metadata says when the clients ran, with which program and on which versions.
	Metadata ClientsMetadata `json:"metadata"`
	// Result is "failed" if an operation works at the newer server itself, but not through the
	// reference. Otherwise it is "inconclusive" if a cell that the result needs was not run, or if
	// an operation that has to cross worked without a proxy. Otherwise it is "passed".
	Result Result `json:"result"`
	// Sentence says the result in one sentence.
	Sentence string `json:"sentence"`
	// Clients are the programs, and the versions of each.
	Clients []ClientProgram `json:"clients"`
	// Operations are the rows.
	Operations []ClientOperation `json:"operations"`
	// Cells are the results, by operation, path and client.
	Cells []ClientCell `json:"cells"`
	Repetition
}

// ClientProgram is a program that people use, or a library in a program of skewproof's own.
type ClientProgram struct {
	// Name is "kubectl", "client-go", "controller-runtime" or "client-node".
	Name string `json:"name"`
	// Versions are those with which its operations were carried out.
	Versions []string `json:"versions"`
}

// ClientsMetadata says when a table was made, by what and on what.
type ClientsMetadata struct {
	Made
	// From is the version of the servers that the clients asked. To is the version of the newer
	// server.
	From string `json:"from"`
	To   string `json:"to"`
	// Complete is false if the run was ended before every operation was tried.
	Complete bool `json:"complete"`
	// LeftOut are the clients that this machine cannot have, each with the reason.
	LeftOut []string `json:"leftOut,omitempty"`
	Tested
}

// ClientOperation is one operation that people do with a client.
type ClientOperation struct {
	// Program is the name of the client: see [ClientProgram].
	Program string `json:"program"`
	// Name is the name of the operation, such as "get"; no other operation has it. Sentence
	// describes the required result.
	Name     string `json:"name"`
	Sentence string `json:"sentence"`
	// Crosses is true if an older server cannot do it by itself.
	Crosses bool `json:"crosses,omitempty"`
	// Controllers is true if kube-controller-manager takes part. It is a client of an older server.
	// So the newer server itself is no control for the operation.
	Controllers bool `json:"controllers,omitempty"`
}

// ClientDirect is the path to the newer server itself, without any proxy. The other paths are the
// subjects: they lead through an older server.
const ClientDirect = "direct"

// ClientPaths are all paths, in the order in which they are shown.
var ClientPaths = []string{ClientDirect, scenario.SubjectNone, scenario.SubjectBuiltin, scenario.SubjectReference}

// Did says whether an operation works.
type Did string

// These are all values of Did. The zero value means that the operation was not tried.
const (
	DidWork    Did = "works"
	DidNotWork Did = "does not work"
	DidNotRun  Did = "not run"
)

// ClientCell is the result of one client on one path.
type ClientCell struct {
	// Operation is the name of a row.
	Operation string `json:"operation"`
	// Path is one of [ClientPaths].
	Path string `json:"path"`
	// Client is the version of the operation's program.
	Client string `json:"client"`
	// Did says whether the operation works.
	Did Did `json:"did"`
	// Reason is why it does not work, in the client's own words if there are any, or why it was not
	// run.
	Reason string `json:"reason,omitempty"`
}

// NewClientsTable makes a table of cells. A cell that is missing was not run.
func NewClientsTable(metadata ClientsMetadata, clients []ClientProgram, operations []ClientOperation, cells []ClientCell) ClientsTable {
	t := ClientsTable{TypeMeta: OfKind(ClientsKind), Metadata: metadata, Clients: clients, Operations: operations, Cells: cells}
	for _, o := range operations {
		for _, path := range ClientPaths {
			for _, client := range t.versions(o) {
				if t.index(o.Name, path, client) < 0 {
					t.Cells = append(t.Cells, ClientCell{o.Name, path, client, DidNotRun, "it was ended before its turn came"})
				}
			}
		}
	}
	t.Result, t.Sentence = t.conclusion()
	return t
}

// versions returns the versions of the program of an operation.
func (t *ClientsTable) versions(o ClientOperation) []string {
	if i := slices.IndexFunc(t.Clients, func(c ClientProgram) bool { return c.Name == o.Program }); i >= 0 {
		return t.Clients[i].Versions
	}
	return nil
}

func (t *ClientsTable) index(operation, path, client string) int {
	return slices.IndexFunc(t.Cells, func(c ClientCell) bool { return c.Operation == operation && c.Path == path && c.Client == client })
}

// cell returns the cell of an operation, a path and a client. NewClientsTable makes sure that it
// exists.
func (t *ClientsTable) cell(operation, path, client string) ClientCell {
	if i := t.index(operation, path, client); i >= 0 {
		return t.Cells[i]
	}
	return ClientCell{operation, path, client, DidNotRun, ""}
}

func (t *ClientsTable) conclusion() (Result, string) {
	var asked, failed, builtin, missing, controls, blind, unfit int
	for _, o := range t.Operations {
		for _, client := range t.versions(o) {
			did := func(path string) Did { return t.cell(o.Name, path, client).Did }
			direct := did(ClientDirect)
			if direct == DidNotWork { // the proxy is not the cause
				unfit++
				continue
			}
			if direct == DidNotRun && !o.Controllers {
				missing++
			}
			switch did(scenario.SubjectReference) {
			case DidWork:
				asked++
			case DidNotWork:
				asked, failed = asked+1, failed+1
			default:
				missing++
			}
			if did(scenario.SubjectBuiltin) == DidNotWork {
				builtin++
			}
			if !o.Crosses {
				continue
			}
			switch did(scenario.SubjectNone) {
			case DidNotWork:
				controls++
			case DidWork:
				blind++
			default:
				missing++
			}
		}
	}
	told := fmt.Sprintf("through the reference %d of %s fail; through builtin %d", failed, counted(asked, "operation"), builtin)
	told += alsoCounted(missing, "that the result needs were not run") + alsoCounted(unfit, "fail at the newer server itself and do not count")
	told += fmt.Sprintf("; without a proxy %d of %d that need the newer server fail", controls, controls+blind)
	switch {
	case controls+blind == 0:
		told += ", so nothing shows that they could have failed"
	case blind == 0:
		told += ", as they must"
	default:
		told += ", and all must: the control is blind"
	}
	switch {
	case failed > 0:
		return ResultFailed, told
	case missing+blind > 0 || controls == 0 || asked == 0 || !t.Metadata.Complete:
		return ResultInconclusive, told
	default:
		return ResultPassed, told
	}
}

var clientsTables = readable[ClientsTable]{"table of clients", ClientsKind, "run 'skewproof clients' again to write a new one", false, ClientsTable.check}

// ReadClients reads a table of clients. It refuses any other document, unknown fields and a result
// that does not follow from the cells. The error names the file and what is wrong with it.
func ReadClients(path string) (ClientsTable, error) { return clientsTables.read(path) }

// check refuses a table that the renderings could not show truthfully.
func (t ClientsTable) check() error {
	for n, c := range t.Cells {
		known := slices.Contains(ClientPaths, c.Path) && slices.ContainsFunc(t.Operations, func(o ClientOperation) bool {
			return o.Name == c.Operation && slices.Contains(t.versions(o), c.Client)
		})
		switch {
		case !known:
			return fmt.Errorf("cells[%d] is of no operation, path or client of the table", n)
		case !slices.Contains([]Did{DidWork, DidNotWork, DidNotRun}, c.Did):
			return fmt.Errorf("cells[%d]: %q is none of %q, %q, %q", n, c.Did, DidWork, DidNotWork, DidNotRun)
		case t.index(c.Operation, c.Path, c.Client) != n:
			return fmt.Errorf("cells[%d] is there twice", n)
		case c.Did == DidWork && c.Reason != "" || c.Did != DidWork && strings.TrimSpace(c.Reason) == "":
			return fmt.Errorf("cells[%d] works and has a reason, or does not and has none", n)
		}
	}
	if result, _ := t.conclusion(); t.Result != result {
		return fmt.Errorf("result is %q, and its cells make it %q: the file was altered", t.Result, result)
	}
	return nil
}
