// Package upstreame2e chooses specs of Kubernetes' own end-to-end tests, reads their results, and
// says what these mean for a Mixed Version Proxy. It starts e2e.test only to list the specs.
package upstreame2e

import (
	"embed"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/reports"
)

//go:embed specs/*.yaml
var specs embed.FS

// Rule is a pattern over the full names of specs, with a reason.
type Rule struct {
	Pattern string `json:"pattern"` // RE2
	Reason  string `json:"reason"`
	re      *regexp.Regexp
}

// Selection says which specs are run: those that match a rule of Focus and none of Skip.
type Selection struct {
	Focus []Rule `json:"focus"`
	Skip  []Rule `json:"skip"`
}

// DefaultSelection is the selection of the repository: specs/selection.yaml.
func DefaultSelection() (Selection, error) { return embedded("specs/selection.yaml", ParseSelection) }

// embedded parses a file of the repository.
func embedded[T any](name string, parse func(data []byte) (T, error)) (T, error) {
	data, err := specs.ReadFile(name)
	if err != nil {
		return *new(T), err
	}
	parsed, err := parse(data)
	if err != nil {
		return *new(T), fmt.Errorf("read %s: %w", name, err)
	}
	return parsed, nil
}

// ParseSelection reads a selection. It is an error if there are unknown fields, rules without a
// reason, or patterns that are not regular expressions.
func ParseSelection(data []byte) (Selection, error) {
	var s Selection
	if err := yaml.UnmarshalStrict(data, &s); err != nil {
		return Selection{}, err
	}
	if len(s.Focus) == 0 {
		return Selection{}, errors.New("focus is empty: no spec would be chosen")
	}
	for _, rules := range [][]Rule{s.Focus, s.Skip} {
		for i := range rules {
			if err := rules[i].compile(); err != nil {
				return Selection{}, err
			}
		}
	}
	return s, nil
}

func (r *Rule) compile() (err error) {
	switch {
	case r.Pattern == "":
		return errors.New("a rule has no pattern")
	case r.Reason == "":
		return fmt.Errorf("the rule %q has no reason", r.Pattern)
	}
	if r.re, err = regexp.Compile(r.Pattern); err != nil {
		return fmt.Errorf("the rule %q: %w", r.Pattern, err)
	}
	return nil
}

// Choose returns the specs that the selection names and that match focus, in their order. focus may
// be nil. Choose also returns how many specs in focus each rule of Skip left out; only the first
// matching rule counts a spec. It is an error if no spec is left.
func (s Selection) Choose(all []string, focus *regexp.Regexp) (chosen []string, left []reports.UpstreamLeft, err error) {
	counts := make([]int, len(s.Skip))
	for _, name := range all {
		if !matches(s.Focus, name) || focus != nil && !focus.MatchString(name) {
			continue
		}
		if i := slices.IndexFunc(s.Skip, func(r Rule) bool { return r.re.MatchString(name) }); i >= 0 {
			counts[i]++
			continue
		}
		chosen = append(chosen, name)
	}
	for i, n := range counts {
		if n > 0 {
			left = append(left, reports.UpstreamLeft{Reason: s.Skip[i].Reason, Specs: n})
		}
	}
	if len(chosen) == 0 {
		return nil, nil, fmt.Errorf("the focus matches none of the specs that the selection names (%d specs in all)", len(all))
	}
	return chosen, left, nil
}

func matches(rules []Rule, name string) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool { return r.re.MatchString(name) })
}
