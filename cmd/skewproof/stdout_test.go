package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/reports"
)

// A user may read only the first lines, as in 'skewproof conformance | head'. The command must
// still write the reports and return the right exit code.
func TestNobodyHasToReadTheOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for line, leaves := range map[string]string{
		"conformance --backend sim --subject reference --known --labels quiet --qps 110 --out DIR/suite":                               "suite/" + reports.ConformanceFile,
		"run quiet --backend sim --subject reference --known --qps 110 --out DIR/run":                                                  "run/" + reports.JSONFile,
		"matrix --backend sim --scenarios quiet --pairs v1.36.3..v1.37.1 --subjects reference,none --known --qps 110 --out DIR/matrix": "matrix/matrix.html",
		"list": "",
	} {
		var said bytes.Buffer
		cmd := program(t, &said, strings.Fields(strings.ReplaceAll(line, "DIR", dir))...)
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = read.Close()
		cmd.Stdout = write
		_ = cmd.Run() // the process state says how it ended
		_ = write.Close()
		if code := cmd.ProcessState.ExitCode(); code != exitPass || strings.Contains(said.String(), "broken pipe") {
			t.Errorf("%s: %v; it said:\n%s", line, cmd.ProcessState, &said)
		}
		if _, err := os.Stat(filepath.Join(dir, leaves)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}
