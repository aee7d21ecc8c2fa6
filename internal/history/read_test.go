package history

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

const (
	runLine = `{"run":{"schema":"skewproof/history/v1alpha1","servers":[{"name":"a","version":"v1"}]}}`
	endLine = `{"end":{"at":9,"complete":true}}`
)

func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"an empty file", "", "the file is empty"},
		{"no JSON", lines(runLine, "hello"), "line 2: not a history record"},
		{"only empty lines", lines("", " "), "the file is empty"},
		{"half of the first line", runLine[:30], "line 1: not a history record"},
		{"half a line that is not the last", lines(runLine, `{"operation":{"id":"1"`, endLine), "line 2: not a history record"},
		{"half a line with its end", lines(runLine, `{"operation":{"id":"1"`), "line 2: not a history record"},
		{"two records on a line", lines(runLine, `{"hop":{}} {"hop":{}}`), "line 2: not a history record: the line has more than one JSON value"},
		{"a record of two kinds", lines(runLine, `{"hop":{},"step":{"index":1}}`), "line 2: not a history record: it has more than one kind"},
		{"a run after an empty line", lines("", endLine, runLine), "line 2: a history has exactly one"},
		{"a file that starts with something else", lines(endLine), "line 1: a history has exactly one"},
		{"a second run", lines(runLine, runLine), "line 2: a history has exactly one"},
		{"another schema", lines(`{"run":{"schema":"skewproof/history/v2"}}`), `schema "skewproof/history/v2": this skewproof reads`},
		{"no schema", lines(`{"run":{}}`), `schema ""`},
		{"an unknown kind of record", lines(runLine, `{}`), "line 2: not a history record: its kind is unknown"},
		{"an unknown field", lines(runLine, `{"hop":{"color":"red"}}`), "unknown field"},
		{"a record after the end", lines(runLine, endLine, `{"hop":{}}`), "line 3: there is a record after the end record"},
		{"an unknown server", lines(runLine, `{"operation":{"id":"1","server":"z"}}`), `operation 1 was sent to server "z"`},
		{"an operation that ends before it starts", lines(runLine, `{"operation":{"id":"1","server":"a","start":2,"end":1}}`), "before it starts"},
		{"a fault that ends before it starts", lines(runLine, `{"fault":{"id":3,"start":2,"end":1}}`), "fault 3 ends at"},
		{"ground truth of an unknown server", lines(runLine, `{"served":{"server":"z"}}`), `server "z"`},
		{"ground truth that overlaps the one before", lines(runLine, `{"served":{"server":"a","document":"x","at":3,"confirmed":4}}`, `{"document":{"hash":"x","resources":null}}`), "confirmed at 4ns"},
		{"ground truth without its document", lines(runLine, `{"served":{"server":"a","document":"sha256:1"}}`), "which the history does not hold"},
		{"an informer of an unknown server", lines(runLine, delivery(`"server":"z","kind":"started"`)), `informer "i" asks server "z"`},
		{"a delivery of an unknown kind", lines(runLine, delivery(`"kind":"lost"`)), `delivery 1 of informer "i" is of unknown kind "lost"`},
		{"an event without an object", lines(runLine, delivery(`"kind":"added"`)), `delivery 1 of informer "i" is an event with 0 objects`},
		{"a delivery twice", lines(runLine, delivery(`"kind":"started"`), delivery(`"kind":"ended"`)), `informer "i" has two deliveries 1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

// delivery returns the first record of an informer, with these fields.
func delivery(fields string) string {
	return `{"delivery":{"informer":"i","index":1,"gvr":{},"at":1,` + fields + `}}`
}

func TestReadAccepts(t *testing.T) {
	for _, c := range []struct {
		name, text string
		complete   bool
	}{
		{"a whole history", lines(runLine, endLine), true},
		{"a truncated one", lines(runLine, `{"operation":{"id":"1","server":"a"}}`), false},
		{"one whose last line was cut short", runLine + "\n" + `{"operation":{"id":"1"`, false},
		{"one whose end was cut short", runLine + "\n" + endLine[:len(endLine)-1], false},
		{"an empty line at first", lines("", runLine, endLine), true},
		{"empty lines", lines(runLine, "", "  ", endLine, ""), true},
		{"no last newline", runLine + "\n" + endLine, true},
		{"a document after what refers to it", lines(runLine, `{"served":{"server":"a","document":"x"}}`, `{"document":{"hash":"x","resources":[]}}`, endLine), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := Read(strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if h.End.Complete != c.complete {
				t.Errorf("complete: %t", h.End.Complete)
			}
		})
	}
}

func TestReadReportsAReadError(t *testing.T) {
	broken := errors.New("input/output error")
	if _, err := Read(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestReadTakesLongLines(t *testing.T) {
	long := `{"step":{"index":1,"sentence":"` + strings.Repeat("x", 4<<20) + `"}}`
	if _, err := Read(strings.NewReader(lines(runLine, long, endLine))); err != nil {
		t.Error(err)
	}
}

func TestReadFileNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	if _, err := ReadFile(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte(lines(runLine, "hello")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), path+": line 2") {
		t.Errorf("corrupt file: %v", err)
	}
}

func TestGVRString(t *testing.T) {
	for want, g := range map[string]GVR{"": {}, "v1/pods": {Version: "v1", Resource: "pods"}, "apps/v1/deployments": {"apps", "v1", "deployments"}} {
		if got := g.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFaultBit(t *testing.T) {
	for _, c := range []struct {
		name          string
		evidence      Evidence
		link, process bool
	}{
		{"nothing", Evidence{}, false, false},
		{"refused", Evidence{Refused: 1}, true, true},
		{"cut", Evidence{Cut: 1}, true, true},
		{"affected", Evidence{Affected: 1}, true, true},
		{"bytes of connections that it left alone", Evidence{BytesUp: 1, BytesDown: 1}, false, false},
		{"requests", Evidence{Requests: 1}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := (Fault{From: "a", To: "b", Blocks: true, Evidence: c.evidence}).Effective(); got != c.link {
				t.Errorf("a fault of a link bit: %t", got)
			}
			if got := (Fault{Server: "a", Blocks: true, Evidence: c.evidence}).Effective(); got != c.process {
				t.Errorf("a fault of a process bit: %t", got)
			}
		})
	}
}
