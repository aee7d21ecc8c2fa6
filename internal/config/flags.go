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
var podKinds = []string{"Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"}

// podSpec is what is read of a pod, or of an object with a template of pods.
type podSpec struct {
	Template struct {
		Spec *podSpec `json:"spec"`
	} `json:"template"`
	Containers []struct {
		Name    string   `json:"name"`
		Image   string   `json:"image"`
		Command []string `json:"command"`
		Args    []string `json:"args"`
		Env     []struct {
			Name      string          `json:"name"`
			Value     string          `json:"value"`
			ValueFrom json.RawMessage `json:"valueFrom"`
		} `json:"env"`
	} `json:"containers"`
}

// pod reads a static pod of kube-apiserver, or an object with a template of such pods.
func (r *reader) pod(raw json.RawMessage) error {
	var pod struct {
		Spec podSpec `json:"spec"`
	}
	if err := decode("pod", raw, &pod); err != nil {
		return err
	}
	found, containers := false, pod.Spec.Containers
	if of := pod.Spec.Template.Spec; of != nil {
		containers = append(containers, of.Containers...)
	}
	for _, c := range containers {
		line, values := slices.Concat(c.Command, c.Args), []string{"$$", "$"}
		for _, e := range c.Env {
			if e.ValueFrom == nil { // others are known on the node only
				values = append(values, "$("+e.Name+")", strings.NewReplacer(values...).Replace(e.Value)) // it may name earlier ones
			}
		}
		for i, word := range line {
			line[i] = strings.NewReplacer(values...).Replace(word)
		}
		own, err := apiserver([][]string{line})
		if last := len(line) - 1; own == nil && last > 0 { // the script of a shell
			script, _ := split(line[last]) // what is no script names no program
			if own, err = apiserver(script); len(own) == 0 {
				own = nil
			}
		}
		if err != nil {
			return err
		}
		if own == nil && c.Name == server { // the image or a wrapper names the program
			own = []string{}
			if i := slices.IndexFunc(line, func(w string) bool { return strings.HasPrefix(w, "--") && w != "--" }); i >= 0 {
				own = line[i:]
			}
		}
		if own == nil {
			continue
		}
		if r.Kind == StaticPod {
			return errors.New("it has several pods of kube-apiserver; make a plan for each: kubectl -n kube-system get pod NAME -o yaml")
		}
		if err := r.take(StaticPod); err != nil {
			return err
		}
		found = true
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
			r.Flags = append(r.Flags, flagsOf([]string{k3sFlag(arg)}, r.name)...)
		}
	}
	return nil
}

// k3sFlag is the flag that k3s and RKE2 make of a kube-apiserver-arg. One without a value is true,
// and a name that ends with "+" or "-" adds to a value of their own.
func k3sFlag(arg string) string {
	name, value, has := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
	if !has {
		value = "true"
	}
	return "--" + strings.TrimRight(name, "-+") + "=" + value
}

// These match the assignment of a command line to a variable or in a unit of systemd, and a flag as
// k3s has it.
var (
	assignment = regexp.MustCompile(`(?s)^(?:ExecStart=[-@:+!]*(.+)|[A-Za-z][A-Za-z0-9_]*\+?=(-.*|.*\s-.*))$`)
	unhyphened = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*[-+]?=`)
)

var errSeveral = errors.New("it has several command lines of kube-apiserver; give the one that counts, or make a plan for each")

// words reads the text of a command line: of kube-apiserver, or of k3s or RKE2 with
// --kube-apiserver-arg, or flags alone. It may be of several lines, or a list in YAML or JSON.
func words(text, from string) ([]gates.Set, error) {
	flag := func(w string) bool { return strings.HasPrefix(w, "-") || unhyphened.MatchString(w) }
	commands := [][]string{strings.Split(text, "\x00")} // as in /proc/PID/cmdline
	if len(commands[0]) == 1 {
		err := yaml.Unmarshal([]byte(text), &commands[0])
		switch {
		case err != nil || !slices.ContainsFunc(commands[0], flag):
			if commands, err = split(text); err != nil {
				return nil, err
			}
		case !alone(text):
			return nil, errSeveral
		}
	}
	line, err := apiserver(commands)
	if err != nil {
		return nil, err
	}
	other := "" // another program that is named
	if line == nil {
		line = slices.Concat(slices.DeleteFunc(commands, func(c []string) bool { return !slices.ContainsFunc(c, flag) })...)
		if len(line) > 0 && !flag(line[0]) && !strings.HasPrefix(line[0], "$") {
			other = line[0]
		}
	}
	var own, all []string // the flags for kube-apiserver of k3s, and all words
	for i, word := range line {
		previous := ""
		if i > 0 {
			previous = line[i-1]
		}
		if value, is := strings.CutPrefix(strings.TrimLeft(word, "-"), k3sArg+"="); is {
			own = append(own, k3sFlag(value))
		} else if previous == "--"+k3sArg {
			own = append(own, k3sFlag(word))
		}
		if unhyphened.MatchString(word) && !takesNext(previous) {
			word = k3sFlag(word)
		}
		if word != "-" && word != "" {
			all = append(all, word)
		}
	}
	switch {
	case len(own) > 0:
		all = own
	case other != "":
		return nil, fmt.Errorf("it begins with %q, which is neither kube-apiserver nor a flag; give the command line of kube-apiserver, or flags alone", other)
	}
	flags := flagsOf(all, from)
	switch {
	case slices.ContainsFunc(flags, func(s gates.Set) bool { return s.Name != "" }):
	case slices.ContainsFunc(flags, gates.Set.Variable):
		return nil, errors.New("its flags are in a variable; give those of the process, such as 'ps -o args= -C kube-apiserver' prints them")
	default:
		return nil, errors.New("it has no flag; want a command line of kube-apiserver, such as 'ps -o args= -C kube-apiserver' prints it")
	}
	return flags, nil
}

// apiserver returns what follows the name of the program in the command that runs kube-apiserver,
// with flags in lines of their own below it. It is nil without such a command.
func apiserver(commands [][]string) (line []string, err error) {
	ended := false
	for _, command := range commands {
		i := -1
		for at, w := range command { // a word after a flag is the program only if no other word is
			if path.Base(w) == server && !strings.HasPrefix(w, "-") && (i < 0 || i > 0 && takesNext(command[i-1]) && !takesNext(command[at-1])) {
				i = at
			}
		}
		switch {
		case i >= 0 && len(line) == 0: // another program may only name it
			line = append([]string{}, command[i+1:]...)
		case i >= 0 && i+1 < len(command) && strings.HasPrefix(command[i+1], "-"):
			return nil, errSeveral
		case line != nil && !ended && strings.HasPrefix(command[0], "-"):
			line = append(line, command...)
		case len(line) > 0:
			ended = true
		}
	}
	return line, nil
}

// takesNext reports whether the value of a flag is the next word of the command line.
func takesNext(word string) bool {
	return strings.HasPrefix(word, "-") && !strings.Contains(word, "=") && !gates.Bare(strings.TrimLeft(word, "-"))
}

// flagsOf reads the words of a command line as pflag does. What is no flag has no name.
func flagsOf(line []string, from string) (all []gates.Set) {
	ended := false // only arguments follow
	for i := 0; i < len(line); i++ {
		word := line[i]
		if short, is := strings.CutPrefix(word, "-v"); is && short != "" { // no other short name has a value
			word = "--v=" + strings.TrimPrefix(short, "=")
		} else if is {
			word = "--v"
		}
		name, value, has := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if ended = ended || word == "--"; ended || !strings.HasPrefix(word, "--") || name == "" || name[0] == '-' {
			all = append(all, gates.Set{Value: word, From: from})
			continue
		}
		s := gates.Set{Name: strings.ReplaceAll(name, "_", "-"), Value: value, Bare: !has, From: from}
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
		case of != nil && of[1] != "":
			command = []string{of[1]}
		case of != nil:
			assigned, err := split(of[2])
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
