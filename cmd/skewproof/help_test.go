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

// Help fits the columns of the terminal: paragraphs and lists are broken anew, examples are not.
func TestHelpFitsTheTerminal(t *testing.T) {
	const help = "Of words, and\nof more.\n\nFlags:\n      --known[=FILE]   exit with 0 if\n                       findings explain it\n" +
		"  -h, --help           help\n\nExamples:\n  skewproof run NAME    # which is to be copied\n\tsource <(skewproof completion)\n"
	const want = "Of words, and of more.\n\nFlags:\n      --known[=FILE]   exit with 0\n                       if findings\n                       explain it\n" +
		"  -h, --help           help\n\nExamples:\n  skewproof run NAME    # which is to be copied\n\tsource <(skewproof completion)\n"
	if got := folded(help, 34); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		out, err := call(t, append(strings.Fields(cmd.CommandPath())[1:], "--help")...)
		out, examples, _ := strings.Cut(out, "Examples:")
		_, flags, _ := strings.Cut(examples, "Flags:")
		for line := range strings.Lines(out + flags) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 100 || strings.Contains(line, `[="true"]`) {
				t.Errorf("%s --help, %v, %d columns: %s", cmd.CommandPath(), err, n, line)
			}
		}
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	visit(newRoot())
}
