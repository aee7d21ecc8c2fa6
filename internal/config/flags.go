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

	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/gates"
)

const (
	server = "kube-apiserver"
	k3sArg = "kube-apiserver-arg"
)

// podKinds are the kinds of objects whose pods may run a kube-apiserver.
var podKinds = []string{"Pod", "Deployment", "StatefulSet", "DaemonSet"}

// podSpec is what is read of a pod.
type podSpec struct {
	Containers []struct {
		Name    string   `json:"name"`
		Image   string   `json:"image"`
		Command []string `json:"command"`
		Args    []string `json:"args"`
	} `json:"containers"`
}

// pod reads a static pod of kube-apiserver, or an object with a template of such pods.
func (r *reader) pod(raw json.RawMessage) error {
	var pod struct {
		Spec struct {
			podSpec
			Template struct {
				Spec podSpec `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if err := decode("pod", raw, &pod); err != nil {
		return err
	}
	found := false
	for _, c := range append(pod.Spec.Containers, pod.Spec.Template.Spec.Containers...) {
		line := slices.Concat(c.Command, c.Args)
		own := apiserver([][]string{line})
		if last := len(line) - 1; own == nil && last > 0 { // the script of a shell
			script, _ := split(line[last]) // what is no script names no program
			if own = apiserver(script); len(own) == 0 {
				own = nil
			}
		}
		if own == nil && c.Name == server { // the image names the program
			own = append([]string{}, line...)
		}
		if own == nil {
			continue
		}
		if r.Kind != "" {
			return fmt.Errorf("it has a pod of kube-apiserver beside a %s; make a plan for each", r.Kind)
		}
		r.Kind, found = StaticPod, true
		r.Flags = flagsOf(own, r.name)
		image, _, _ := strings.Cut(path.Base(c.Image), "@")
		_, r.Version, _ = strings.Cut(image, ":")
	}
	if !found {
		r.note("The pod has no container that runs kube-apiserver.")
	}
	return nil
}

// k3s reads a configuration of k3s or RKE2, whose kube-apiserver-arg has flags without hyphens. It
// replaces that of a file before, unless its name ends with "+".
func (r *reader) k3s(fields map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		more, is := strings.CutPrefix(name, k3sArg)
		if !is || more != "" && more != "+" {
			continue
		}
		var list []string
		raw := fields[name]
		if raw[0] == '"' { // one flag
			raw = slices.Concat([]byte("["), raw, []byte("]"))
		}
		if err := errors.Join(r.take(K3s), decode(name, raw, &list)); err != nil {
			return fmt.Errorf("%w; want a list of NAME=VALUE in quotes", err)
		}
		if more == "" {
			r.Flags = nil
		}
		for _, arg := range list {
			r.Flags = append(r.Flags, flagsOf([]string{"--" + strings.TrimLeft(arg, "-")}, r.name)...)
		}
	}
	return nil
}

// These match the assignment of a command line to a variable or in a unit of systemd, and a flag as
// k3s has it.
var (
	assignment = regexp.MustCompile(`(?s)^(?:[A-Z][A-Z0-9_]*\+?=(-.*|.*\s-.*)|ExecStart=[-@:+!]*(.+))$`)
	unhyphened = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*=`)
)

// words reads the text of a command line: of kube-apiserver, or of k3s or RKE2 with
// --kube-apiserver-arg, or flags alone. It may be of several lines, or a list in YAML or JSON.
func words(text, from string) ([]gates.Set, error) {
	flag := func(w string) bool { return strings.HasPrefix(w, "-") || unhyphened.MatchString(w) }
	commands := [][]string{strings.Split(text, "\x00")} // as in /proc/PID/cmdline
	if len(commands[0]) == 1 && (yaml.Unmarshal([]byte(text), &commands[0]) != nil || !slices.ContainsFunc(commands[0], flag)) {
		var err error
		if commands, err = split(text); err != nil {
			return nil, err
		}
	}
	line := apiserver(commands)
	if line == nil {
		line = slices.Concat(slices.DeleteFunc(commands, func(c []string) bool { return !slices.ContainsFunc(c, flag) })...)
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
		if word != "-" && word != "" {
			all = append(all, word)
		}
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

// apiserver returns what follows the name of the program in the command that runs kube-apiserver,
// with flags in lines of their own below it. It is nil without such a command.
func apiserver(commands [][]string) (line []string) {
	for _, command := range commands {
		i := slices.IndexFunc(command, func(w string) bool { return path.Base(w) == server })
		switch {
		case i >= 0 && len(line) == 0: // another program may only name it
			line = append([]string{}, command[i+1:]...)
		case line != nil && strings.HasPrefix(command[0], "-"):
			line = append(line, command...)
		case len(line) > 0:
			return line
		}
	}
	return line
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

// redirection matches a word with which a shell redirects input or output.
var redirection = regexp.MustCompile(`^[0-9&]*[<>]`)

// split splits a text into commands and their words as a shell does, without variables. A command
// ends with its line, if no backslash continues it, with an operator, or where it redirects output.
// What an assignment has as its value is read, too.
func split(text string) (commands [][]string, err error) {
	var command []string
	var word strings.Builder
	open, escaped, comment, quote := false, false, false, rune(0)
	end := func() error {
		of := assignment.FindStringSubmatch(word.String())
		switch {
		case of != nil && of[2] != "":
			command = []string{of[2]}
		case of != nil:
			assigned, err := split(of[1])
			if err != nil {
				return err
			}
			command = slices.Concat(assigned...)
		case open:
			command = append(command, word.String())
		}
		word.Reset()
		open = false
		return nil
	}
	text += "\n\n" // the first one may be escaped
	for i, r := range text {
		switch {
		case comment && r != '\n':
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
		case r == '#' && !open:
			comment = true
		case r == '\n' || strings.ContainsRune(";|&", r) && (!open || unicode.IsSpace(rune(text[i+1]))):
			if err := end(); err != nil {
				return nil, err
			}
			if i := slices.IndexFunc(command, redirection.MatchString); i >= 0 {
				command = command[:i]
			}
			if len(command) > 0 {
				commands = append(commands, command)
			}
			command, comment = nil, false
		case unicode.IsSpace(r):
			if err := end(); err != nil {
				return nil, err
			}
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote (%c) is not closed", quote)
	}
	return commands, nil
}
