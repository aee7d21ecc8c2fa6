package main

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// repository is the root of the repository, seen from this package.
const repository = "../.."

// documents are the files that people read.
func documents(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"README.md", "ARCHITECTURE.md", "docs/*.md", "docs/findings/*.md", ".github/*.md", "sim/recorded/documents/*.md", "proxy/discovery/testdata/*.md"} {
		found, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// A console block shows command lines after a "$ ". A backslash continues a line.
var consoleLine = regexp.MustCompile(`(?m)^\$ ((?:.*\\\n)*.+)$`)

// The program, or the Makefile, must accept every command line in a document.
func TestCommandsInDocuments(t *testing.T) {
	checked := 0
	for _, document := range documents(t) {
		content, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range consoleLine.FindAllStringSubmatch(string(content), -1) {
			for _, command := range commands(line[1]) {
				if problem := checkCommand(t, command); problem != "" {
					t.Errorf("%s: %s: %s", document, command, problem)
				}
				checked++
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d command lines were found", checked)
	}
}

// consoleBlock is a block of command lines, with what they print.
var consoleBlock = regexp.MustCompile("(?s)```console\\n(.*?)```")

// README's commands do what README says: each is carried out as it stands there, and the lines
// below it are in its output. An ellipsis stands for whatever comes there. What builds or tests
// skewproof is carried out by .ci/run.
func TestCommandsOfTheReadme(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	ci, err := os.ReadFile(filepath.Join(repository, ".ci/run"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	carriedOut := 0
	for _, block := range consoleBlock.FindAllStringSubmatch(string(content), -1) {
		for _, part := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			line, printed, _ := strings.Cut(part, "\n")
			if strings.HasPrefix(line, "make ") {
				if !strings.Contains(string(ci), line) {
					t.Errorf("%s: .ci/run does not carry it out", line)
				}
				continue
			}
			words := split(t, line)
			if words[0] != "bin/skewproof" {
				t.Errorf("%s: README has another program", line)
				continue
			}
			carriedOut++
			out, err := call(t, words[1:]...)
			if err != nil {
				t.Errorf("%s: %v\n%s", line, err, out)
			}
			rest := out
			for _, want := range strings.FieldsFunc(printed, func(r rune) bool { return r == '\n' || r == '…' }) {
				_, after, found := strings.Cut(rest, strings.TrimSpace(want))
				if !found {
					t.Errorf("%s does not print, in this order: %s\n%s", line, want, out)
				}
				rest = after
			}
		}
	}
	if carriedOut < 4 {
		t.Errorf("only %d commands were carried out", carriedOut)
	}
}

// quotedOrOperator matches text in quotes, or an operator between two commands.
var quotedOrOperator = regexp.MustCompile(`'[^']*'|"[^"]*"| (?:&&|\|\||\|) `)

// commands splits a line at the operators that are not in quotes.
func commands(line string) []string {
	const operator = "\x00"
	return strings.Split(quotedOrOperator.ReplaceAllStringFunc(line, func(found string) string {
		if strings.HasPrefix(found, " ") {
			return operator
		}
		return found
	}), operator)
}

// checkCommand says what is wrong with a command line; "" if it is right, or if it is of another
// program.
func checkCommand(t *testing.T, command string) string {
	t.Helper()
	words := split(t, command)
	for len(words) > 0 && regexp.MustCompile(`^[A-Z_]+=`).MatchString(words[0]) {
		words = words[1:]
	}
	switch {
	case len(words) == 0:
		return ""
	case slices.Contains([]string{"skewproof", "bin/skewproof"}, words[0]):
		return checkWords(words[1:])
	case words[0] == "make":
		return checkMake(t, words[1:])
	}
	return ""
}

// quotedOrRedirection matches text in quotes, or where input comes from or output goes to.
var quotedOrRedirection = regexp.MustCompile(`'[^']*'|"[^"]*"| [0-9]?(?:>>?|<) ?[^ (]+`)

// split returns the words that a shell makes of a command line, without its comment and its
// redirections: the shell would carry these out.
func split(t *testing.T, command string) []string {
	t.Helper()
	command = quotedOrRedirection.ReplaceAllStringFunc(command, func(found string) string {
		if strings.HasPrefix(found, " ") {
			return ""
		}
		return found
	})
	out, err := exec.CommandContext(t.Context(), "bash", "-fc", "printf '%s\\0' "+command).Output()
	if err != nil {
		t.Fatalf("split %q: %v", command, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// checkWords says why the program does not take these words. It carries out nothing.
func checkWords(words []string) string {
	root := newRoot()
	command, rest, err := root.Find(words)
	if err == nil {
		err = command.ParseFlags(rest)
	}
	if errors.Is(err, pflag.ErrHelp) {
		return ""
	}
	if err == nil {
		err = command.ValidateArgs(command.Flags().Args())
	}
	if err == nil && command.HasSubCommands() && command != root && len(rest) > 0 && !command.Runnable() {
		return "there is no such command"
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// checkMake says which target or variable the Makefile lacks.
func checkMake(t *testing.T, words []string) string {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range words {
		pattern := `(?m)^` + regexp.QuoteMeta(word) + `:`
		if name, _, isVariable := strings.Cut(word, "="); isVariable {
			pattern = `(?m)^` + regexp.QuoteMeta(name) + `\s*[?:]?=`
		}
		if !regexp.MustCompile(pattern).Match(makefile) {
			return "the Makefile has no " + word
		}
	}
	return ""
}

func TestCheckOfCommandsFinds(t *testing.T) {
	for _, wrong := range []string{
		"skewproof rnu quiet", "skewproof run quiet --sbuject none", "skewproof run", "bin/skewproof replay", "make scenrio", "make scenario NANE=x",
		"skewproof binaries fetch v1.36.3", "skewproof plan --form v1.36.3 > plan.html", "skewproof judge --sbuject x 2>errors < in",
	} {
		if checkCommand(t, wrong) == "" {
			t.Errorf("%s counts as right", wrong)
		}
	}
	for _, right := range []string{"skewproof run quiet --subject none # comment", "make scenario NAME=quiet", "curl --nothing", "CGO_ENABLED=0 go build"} {
		if problem := checkCommand(t, right); problem != "" {
			t.Errorf("%s: %s", right, problem)
		}
	}
}

// prowJob has the fields of Prow's JobBase, Periodic and Presubmit
// (sigs.k8s.io/prow/pkg/config/jobs.go) that the jobs of this repository use.
type prowJob struct {
	Name             string            `json:"name"`
	Interval         string            `json:"interval,omitempty"`
	AlwaysRun        *bool             `json:"always_run,omitempty"`
	Optional         bool              `json:"optional,omitempty"`
	Decorate         *bool             `json:"decorate,omitempty"`
	DecorationConfig map[string]string `json:"decoration_config,omitempty"`
	PathAlias        string            `json:"path_alias,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`
	ExtraRefs        []prowRefs        `json:"extra_refs,omitempty"`
	Annotations      map[string]string `json:"annotations,omitempty"`
	Spec             *corev1.PodSpec   `json:"spec"`
}

// prowRefs has the fields of Prow's Refs (sigs.k8s.io/prow/pkg/apis/prowjobs/v1).
type prowRefs struct {
	Org     string `json:"org"`
	Repo    string `json:"repo"`
	BaseRef string `json:"base_ref"`
	WorkDir bool   `json:"workdir,omitempty"`
}

// The Prow jobs decode strictly, and the commands in them are ones that the program takes.
func TestProwJobs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, "docs/prow/*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files of jobs, %v", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var config struct {
			Periodics  []prowJob            `json:"periodics"`
			Presubmits map[string][]prowJob `json:"presubmits"`
		}
		if err := yaml.UnmarshalStrict(content, &config); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		jobs := slices.Concat(config.Periodics, slices.Concat(slices.Collect(maps.Values(config.Presubmits))...))
		if len(jobs) == 0 {
			t.Errorf("%s has no job", file)
		}
		for _, job := range jobs {
			for _, c := range job.Spec.Containers {
				line := strings.TrimPrefix(strings.Join(c.Args, " "), "bash -c ")
				for _, command := range commands(line) {
					if problem := checkCommand(t, command); problem != "" && !strings.HasPrefix(command, "make -C ") {
						t.Errorf("%s: %s: %s: %s", file, job.Name, command, problem)
					}
				}
			}
		}
	}
}
