package proxy

import (
	"encoding/csv"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParsePolicy reads the name of a preset and changes of its switches (see [Policy.Change]), with
// commas between them: "reference,Routing.Attempts=1". A change with a comma in its value is
// written in double quotes (RFC 4180). The policy keeps the name of the preset.
func ParsePolicy(text string) (Policy, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.TrimLeadingSpace = true
	lines, err := r.ReadAll()
	if err == nil && len(lines) != 1 {
		err = errors.New("want one line")
	}
	if err != nil {
		return Policy{}, fmt.Errorf("policy %q: %w; want PRESET or PRESET,SWITCH=VALUE", text, err)
	}
	p, err := PresetNamed(lines[0][0])
	if err != nil {
		return Policy{}, err
	}
	for _, change := range lines[0][1:] {
		if err := p.Change(change); err != nil {
			return Policy{}, err
		}
	}
	return p, nil
}

// Change sets one switch, such as "Routing.Attempts=1". After an error the policy is unchanged.
func (p *Policy) Change(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("change %q: want SWITCH=VALUE, such as Knowledge.KeepLastGood=true", text)
	}
	var names []string
	for _, s := range p.Switches() {
		if names = append(names, s.Name); s.Name != name {
			continue
		}
		if err := s.set(value); err != nil {
			return fmt.Errorf("change %q: %w", text, err)
		}
		return nil
	}
	return fmt.Errorf("change %q: no switch %q%s; docs/policies.md lists them", text, name, meant(name, names))
}

// Switch is one field of a policy.
type Switch struct {
	Name  string // "Knowledge.KeepLastGood"
	value reflect.Value
}

// Switches returns the fields of a policy, in the order of their declaration.
func (p *Policy) Switches() []Switch {
	var all []Switch
	groups := reflect.ValueOf(p).Elem()
	for i := range groups.NumField() {
		g := groups.Field(i)
		if g.Kind() != reflect.Struct {
			continue
		}
		for j := range g.NumField() {
			all = append(all, Switch{groups.Type().Field(i).Name + "." + g.Type().Field(j).Name, g.Field(j)})
		}
	}
	return all
}

// String returns the value in the form that a change uses.
func (s Switch) String() string { return fmt.Sprint(s.value.Interface()) }

// set parses a value in the form of [Switch.String] and docs/policies.md. The error says which
// values are allowed.
func (s Switch) set(text string) error {
	switch s.value.Interface().(type) {
	case bool:
		b, err := parseBool(text)
		if err != nil {
			return errors.New("want true or false")
		}
		s.value.SetBool(b)
	case int:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return errors.New("want a whole number, 0 or more")
		}
		s.value.SetInt(int64(n))
	case float64: // a fraction of something
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !(f >= 0 && f <= 1) {
			return errors.New("want a number from 0 to 1")
		}
		s.value.SetFloat(f)
	case time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return errors.New("want a time such as 500ms, 30s or 5m, 0s or more")
		}
		s.value.SetInt(int64(d))
	case ExtensionPolicy:
		return s.setNamed(extensionPolicies, text)
	case IncompletePolicy:
		return s.setNamed(incompletePolicies, text)
	case string:
		s.value.SetString(text)
	default:
		return fmt.Errorf("its type %s cannot be set", s.value.Type())
	}
	return nil
}

func (s Switch) setNamed(names []string, text string) error {
	i := slices.Index(names, text)
	if i < 0 {
		return fmt.Errorf("want %s or %s", strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
	}
	s.value.SetInt(int64(i))
	return nil
}

// parseBool also accepts yes and no, as docs/policies.md writes them.
func parseBool(text string) (bool, error) {
	switch text {
	case "yes":
		return true, nil
	case "no":
		return false, nil
	}
	return strconv.ParseBool(text)
}

// Differences returns the changes that turn one policy into another, one for each switch.
func Differences(from, to Policy) []string {
	a, b := from.Switches(), to.Switches()
	var all []string
	for i := range a {
		if a[i].String() != b[i].String() {
			all = append(all, b[i].Name+"="+b[i].String())
		}
	}
	return all
}

// meant returns what an error about an unknown name adds if the user may have mistyped a known one.
// Nothing else in the module of a kube-apiserver compares words.
func meant(name string, known []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, k := range known {
		d := distance(strings.ToLower(name), strings.ToLower(k))
		if strings.HasSuffix(k, "."+name) {
			d = 0
		}
		if d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// distance returns how many letters must be changed, added or removed to turn one word into another
// (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0] // of the row and the column before
		row[0] = i + 1
		for j := range len(b) {
			same := before
			if a[i] != b[j] {
				same++
			}
			before = row[j+1]
			row[j+1] = min(same, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}
