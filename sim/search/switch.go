package search

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skewproof/skewproof/proxy"
)

// change sets one switch.
func change(p *proxy.Policy, text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("change %q: want SWITCH=VALUE, such as Knowledge.KeepLastGood=true", text)
	}
	for _, sw := range switches(p) {
		if sw.Name != name {
			continue
		}
		if err := sw.set(value); err != nil {
			return fmt.Errorf("change %q: %w", text, err)
		}
		return nil
	}
	return fmt.Errorf("change %q: no switch %q; docs/policies.md lists them", text, name)
}

// Switch is one field of a policy.
type Switch struct {
	Name  string // "Knowledge.KeepLastGood"
	value reflect.Value
}

// switches are the fields of a policy, in the order of their declaration.
func switches(p *proxy.Policy) []Switch {
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

// String is the value as it stands in a change.
func (s Switch) String() string { return fmt.Sprint(s.value.Interface()) }

// set takes a value as [Switch.String] and docs/policies.md write it, and nothing that only begins like one. The error says what is wanted.
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
	case proxy.ExtensionPolicy:
		e, err := parseExtensions(text)
		if err != nil {
			return err
		}
		s.value.SetInt(int64(e))
	case string:
		s.value.SetString(text)
	default:
		return fmt.Errorf("its type %s cannot be set", s.value.Type())
	}
	return nil
}

// parseBool takes what docs/policies.md shows as well.
func parseBool(text string) (bool, error) {
	switch text {
	case "yes":
		return true, nil
	case "no":
		return false, nil
	}
	return strconv.ParseBool(text)
}

// parseExtensions takes the number as well, which stands in repro files of earlier versions.
func parseExtensions(text string) (proxy.ExtensionPolicy, error) {
	if n, err := strconv.Atoi(text); err == nil && n >= int(proxy.ExtensionsIgnored) && n <= int(proxy.ExtensionsExact) {
		return proxy.ExtensionPolicy(n), nil
	}
	return proxy.ParseExtensionPolicy(text)
}

// differences are the changes that turn the switches of one policy, each by itself, to what they are in another.
func differences(from, to proxy.Policy) []string {
	a, b := switches(&from), switches(&to)
	var all []string
	for i := range a {
		if a[i].String() != b[i].String() {
			all = append(all, b[i].Name+"="+b[i].String())
		}
	}
	return slices.Clip(all)
}
