package shell

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// People copy command lines out of reports. A shell must parse such a line into the same words as
// those from which the line was made, for all their characters.
func TestAShellTakesACommandLineForWhatItWas(t *testing.T) {
	words := []string{"quiet", "v1.30.14+without.batch.v1", "--contexts=a,b", "a && b || !c", "(a)", ""}
	for _, r := range "{},[]~^=*?#;<>|$`'\"\\!%@ \t\n\u00a0é-" {
		words = append(words, string(r), "x"+string(r)+"y", "{a,"+string(r)+"b}", string(r)+"root")
	}
	line := Line(words...)
	taken, err := exec.CommandContext(t.Context(), "bash", "-c", "cd /; printf '%s\\0' "+line).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(taken), "\x00"), "\x00"); !slices.Equal(got, words) {
		t.Errorf("of %s\na shell makes %q, want %q", line, got, words)
	}
	if line := Line("skewproof", "run", "--to", "v1.30.14+without.batch.v1", "--pairs=v1..v2,v2..v3"); strings.Contains(line, "'") {
		t.Errorf("words are quoted that need not be: %s", line)
	}
}
