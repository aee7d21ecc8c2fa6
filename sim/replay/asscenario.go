package replay

import (
	"bytes"
	"fmt"
	"go/format"
	"go/token"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim/search"
)

// AsScenario returns a Go file for the package scenarios, with the plan of a repro file as a
// scenario with the given name. The versions of the file become FROM and TO. A person must still
// describe the scenario, and add it to the catalogue.
func AsScenario(name string, r *search.Repro, p *Plan) ([]byte, error) {
	variable, err := variableOf(name)
	if err != nil {
		return nil, err
	}
	holds, source := "", ""
	for _, i := range invariant.All() {
		if i.Name == r.Invariant {
			holds, source = i.Sentence, i.Source
		}
	}
	w := writer{from: r.Spec.From, to: r.Spec.To}
	var body bytes.Buffer
	fmt.Fprintf(&body, "var %s = scenario.Scenario{\n", variable)
	for _, field := range [][2]string{{"Name", name}, {"Happens", happens(p)}, {"Holds", holds}, {"Source", source}} {
		fmt.Fprintf(&body, "%s: %s,\n", field[0], strconv.Quote(field[1]))
	}
	fmt.Fprintf(&body, "About: []string{%q},\nMinServers: %d,\n", r.Invariant, len(p.Servers))
	fmt.Fprintf(&body, "Control: scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{%q}},\n", r.Invariant)
	fmt.Fprint(&body, "Plan: func(p scenario.Parameters) scenario.Plan {\nreturn ")
	plan := p.Plan
	bounds := plan.Bounds
	plan.Bounds = scenario.Plan{}.Bounds
	if err := w.value(reflect.ValueOf(plan)); err != nil {
		return nil, fmt.Errorf("write scenario %s: %w", name, err)
	}
	literal := strings.TrimSuffix(w.String(), "}")
	fmt.Fprintf(&body, "%sBounds: p.Bounds,\n}\n},\n}\n", literal)
	var file bytes.Buffer
	fmt.Fprint(&file, "package scenarios\n\nimport (\n")
	if strings.Contains(literal, "time.") {
		fmt.Fprint(&file, "\"time\"\n\n")
	}
	for _, path := range []string{"fault", "history", "scenario"} {
		if path == "scenario" || strings.Contains(literal, path+".") {
			fmt.Fprintf(&file, "\"github.com/skewproof/skewproof/internal/%s\"\n", path)
		}
	}
	fmt.Fprintf(&file, ")\n\n// %s is the schedule that broke %s (seed %d), with the bounds %s of staleness and %s of convergence.\n%s",
		variable, r.Invariant, r.Seed, bounds.Staleness, bounds.Convergence, body.String())
	return format.Source(file.Bytes())
}

// happens describes the disturbing steps of a plan in a sentence.
func happens(p *Plan) string {
	var all []string
	for _, s := range p.Steps {
		if s.Disturbs() {
			all = append(all, s.String())
		}
	}
	text := strings.Join(all, "; ")
	if text == "" {
		return "There is no fault and no change."
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// variableOf makes a Go identifier from a scenario's name: restartUnderCut from restart-under-cut.
func variableOf(name string) (string, error) {
	words := strings.Split(name, "-")
	for i, word := range words {
		if word == "" || strings.ToLower(word) != word {
			return "", fmt.Errorf("scenario %q: want words of lower-case letters and digits with hyphens between them, such as restart-under-cut",
				name)
		}
		if i > 0 {
			words[i] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	variable := strings.Join(words, "")
	if !token.IsIdentifier(variable) {
		return "", fmt.Errorf("scenario %q: %q is no name in Go; begin with a letter, and choose another word than a keyword", name, variable)
	}
	return variable, nil
}

// writer writes values as Go literals. Fields with their zero value are left out.
type writer struct {
	bytes.Buffer
	from, to string // versions that are parameters
}

func (w *writer) value(v reflect.Value) error {
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		fmt.Fprint(w, durationOf(time.Duration(v.Int())))
		return nil
	case v.Kind() == reflect.String && v.String() == w.from:
		fmt.Fprint(w, "p.From")
		return nil
	case v.Kind() == reflect.String && v.String() == w.to:
		fmt.Fprint(w, "p.To")
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		fmt.Fprint(w, strconv.Quote(v.String()))
	case reflect.Bool, reflect.Int, reflect.Int64:
		fmt.Fprint(w, v.Interface())
	case reflect.Pointer:
		fmt.Fprint(w, "&")
		return w.value(v.Elem())
	case reflect.Slice:
		fmt.Fprintf(w, "%s{\n", v.Type())
		for i := range v.Len() {
			if err := w.value(v.Index(i)); err != nil {
				return err
			}
			fmt.Fprint(w, ",\n")
		}
		fmt.Fprint(w, "}")
	case reflect.Struct:
		fmt.Fprintf(w, "%s{", v.Type())
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				continue
			}
			fmt.Fprintf(w, "\n%s: ", v.Type().Field(i).Name)
			if err := w.value(v.Field(i)); err != nil {
				return err
			}
			fmt.Fprint(w, ",")
		}
		fmt.Fprint(w, "\n}")
	default:
		return fmt.Errorf("a value of type %s cannot be written", v.Type())
	}
	return nil
}

// durationOf writes a time in the largest unit that needs no fraction.
func durationOf(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Minute, "time.Minute"}, {time.Second, "time.Second"}, {time.Millisecond, "time.Millisecond"},
		{time.Microsecond, "time.Microsecond"}} {
		if d%unit.of == 0 {
			return fmt.Sprintf("%d * %s", d/unit.of, unit.name)
		}
	}
	return fmt.Sprintf("%d * time.Nanosecond", d)
}
