package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/skewproof/skewproof/internal/gates"
)

const (
	server = "kube-apiserver"
	k3sArg = "kube-apiserver-arg"
)

// pod reads a static pod of kube-apiserver.
func (r *reader) pod(raw []byte) error {
	f := &r.File
	var pod struct {
		Spec struct {
			Containers []struct {
				Name    string   `json:"name"`
				Image   string   `json:"image"`
				Command []string `json:"command"`
				Args    []string `json:"args"`
			} `json:"containers"`
		} `json:"spec"`
	}
	if err := scalar("Pod", raw, &pod); err != nil {
		return err
	}
	for _, c := range pod.Spec.Containers {
		line := slices.Concat(c.Command, c.Args)
		if len(line) == 3 && line[1] == "-c" { // a shell
			var err error
			if line, err = split(line[2]); err != nil {
				return fmt.Errorf("the command of container %s: %w", c.Name, err)
			}
		}
		i := slices.IndexFunc(line, func(w string) bool { return path.Base(w) == server })
		if i < 0 && c.Name != server {
			continue
		}
		if f.Kind != "" {
			return fmt.Errorf("it has a static pod of kube-apiserver beside a %s; make a plan for each", f.Kind)
		}
		f.Kind = StaticPod
		f.Flags = flagsOf(line[i+1:], r.name)
		image, _, _ := strings.Cut(path.Base(c.Image), "@")
		_, f.Version, _ = strings.Cut(image, ":")
	}
	if f.Kind != StaticPod {
		f.note("The pod has no container that runs kube-apiserver.")
	}
	return nil
}

// k3s reads a configuration of k3s or RKE2, whose kube-apiserver-arg has flags without hyphens.
func (r *reader) k3s(raw []byte) error {
	var fields map[string]json.RawMessage
	if err := scalar("configuration", raw, &fields); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if tool := others[name]; tool != "" {
			return notRead(tool)
		}
		if strings.TrimSuffix(name, "+") != k3sArg {
			continue
		}
		var list []string
		raw := fields[name]
		if raw[0] == '"' { // one flag
			raw = slices.Concat([]byte("["), raw, []byte("]"))
		}
		if err := errors.Join(r.take(K3s), scalar(name, raw, &list)); err != nil {
			return fmt.Errorf("%w; want a list of NAME=VALUE in quotes", err)
		}
		for _, arg := range list {
			r.Flags = append(r.Flags, flagsOf([]string{"--" + strings.TrimLeft(arg, "-")}, r.name)...)
		}
	}
	return nil
}

// environment matches the assignment of a command line to an environment variable, and unhyphened a
// flag as k3s has it.
var (
	environment = regexp.MustCompile(`^[A-Z][A-Z0-9_]*=(-.*)$`)
	unhyphened  = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*=`)
)

// words reads the text of a command line: of kube-apiserver, or of k3s or RKE2 with
// --kube-apiserver-arg, or flags alone. It may be of several lines.
func words(text, from string) ([]gates.Set, error) {
	line, err := split(text)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(line, environment.MatchString); i >= 0 {
		if line, err = split(environment.FindStringSubmatch(line[i])[1]); err != nil {
			return nil, err
		}
	}
	line = slices.DeleteFunc(line, func(w string) bool { return w == "-" || w == "" })
	if i := slices.IndexFunc(line, func(w string) bool { return path.Base(w) == server }); i >= 0 {
		line = line[i+1:]
	}
	var own, all []string // the flags for kube-apiserver of k3s, and all words
	for i, word := range line {
		previous := ""
		if i > 0 {
			previous = line[i-1]
		}
		if value, is := strings.CutPrefix(strings.TrimLeft(word, "-"), k3sArg+"="); is {
			own = append(own, "--"+value)
		} else if previous == "--"+k3sArg {
			own = append(own, "--"+word)
		}
		if unhyphened.MatchString(word) && !takesNext(previous) {
			word = "--" + word
		}
		all = append(all, word)
	}
	if len(own) > 0 {
		all = own
	}
	flags := flagsOf(all, from)
	if !slices.ContainsFunc(flags, func(s gates.Set) bool { return s.Name != "" }) {
		return nil, errors.New("it has no flag; want a command line of kube-apiserver, such as 'ps -o args= -C kube-apiserver' prints it")
	}
	return flags, nil
}

// takesNext reports whether the value of a flag is the next word of the command line.
func takesNext(word string) bool {
	return strings.HasPrefix(word, "-") && !strings.Contains(word, "=") && !gates.Bare(strings.TrimLeft(word, "-"))
}

// flagsOf reads the words of a command line.
func flagsOf(line []string, from string) (all []gates.Set) {
	for i := 0; i < len(line); i++ {
		word := line[i]
		if !strings.HasPrefix(word, "-") {
			all = append(all, gates.Set{Value: word, From: from})
			continue
		}
		name, value, has := strings.Cut(strings.TrimLeft(word, "-"), "=")
		s := gates.Set{Name: name, Value: value, Bare: !has, From: from}
		if takesNext(word) && i+1 < len(line) {
			i++
			s.Value, s.Bare = line[i], false
		}
		all = append(all, s)
	}
	return all
}

// operator matches a word with which a shell ends a command, or redirects its output.
var operator = regexp.MustCompile(`^([0-9&]*[<>|].*|&&?|;)$`)

// split splits a text into words as a shell does, up to the end of the command, without variables.
// A line that begins with # is a comment.
func split(text string) (all []string, err error) {
	var word strings.Builder
	open, quote := false, rune(0)
	end := func() {
		if open {
			all = append(all, word.String())
		}
		word.Reset()
		open = false
	}
	escaped, comment, start := false, false, true // start of a line
	for _, r := range text {
		atStart := start
		start = r == '\n' || start && unicode.IsSpace(r)
		switch {
		case comment:
			comment = r != '\n'
		case escaped:
			if escaped = false; r != '\n' {
				word.WriteRune(r)
				open = true
			}
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, open = r, true
		case r == '#' && atStart:
			comment = true
		case unicode.IsSpace(r):
			end()
		default:
			word.WriteRune(r)
			open = true
		}
	}
	end()
	if quote != 0 {
		return nil, fmt.Errorf("a quote (%c) is not closed", quote)
	}
	if i := slices.IndexFunc(all, operator.MatchString); i >= 0 {
		all = all[:i]
	}
	return all, nil
}
