package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command that people see is in a group of the help.
func TestHelpIsInGroups(t *testing.T) {
	out, err := call(t, "--help")
	if err != nil || strings.Contains(out, "Additional Commands") || strings.Contains(out, "Available Commands") {
		t.Errorf("%v, a command is in no group:\n%s", err, out)
	}
	at := 0
	for _, heading := range []string{"Begin with these:", "Exit codes:", "\nTest:", "\nSearch:", "\nResults:", "\nBefore an upgrade:", "\nSet-up:"} {
		next := strings.Index(out, heading)
		if next < at {
			t.Errorf("%q is at %d, after %d", heading, next, at)
		}
		at = next
	}
}

// The program takes every line that the help shows as an example.
func TestExamplesInHelp(t *testing.T) {
	var visit func(cmd *cobra.Command) int
	visit = func(cmd *cobra.Command) (checked int) {
		text := cmd.Example
		if !cmd.HasParent() {
			text = beginHere
		}
		for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
			if !strings.HasPrefix(line, "  skewproof ") {
				continue
			}
			line, _, _ = strings.Cut(strings.TrimSpace(line), " > ")
			if !cmd.HasParent() {
				line, _, _ = strings.Cut(line, "   ")
			}
			for _, command := range commands(line) {
				checked++
				if problem := checkCommand(t, command); problem != "" {
					t.Errorf("%s: %s: %s", cmd.CommandPath(), command, problem)
				}
			}
		}
		for _, below := range cmd.Commands() {
			checked += visit(below)
		}
		return checked
	}
	if checked := visit(newRoot()); checked < 60 {
		t.Errorf("only %d examples were found", checked)
	}
}

// The first examples of 'explore' end as the help says. The second one takes longer.
func TestFirstExampleOfExploreEndsAsTheHelpSays(t *testing.T) {
	first, _, _ := strings.Cut(newExplore().Example, "\n")
	line, said, ok := strings.Cut(first, "#")
	code := regexp.MustCompile(`exit code (\d)`).FindStringSubmatch(said)
	if !ok || code == nil {
		t.Fatalf("the first example says no exit code: %s", first)
	}
	t.Chdir(t.TempDir())
	out, err := call(t, strings.Fields(line)[1:]...)
	if want, _ := strconv.Atoi(code[1]); exitCodeOf(err) != want {
		t.Errorf("%s: exit code %d, want %d; output:\n%s", line, exitCodeOf(err), want, out)
	}
}
