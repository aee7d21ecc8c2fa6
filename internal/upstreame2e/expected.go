package upstreame2e

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
)

// Expected is a spec that fails for a known reason. An empty list of paths, subjects or versions
// stands for all of them; versions are minor versions such as "v1.36".
type Expected struct {
	// Spec is the full name of the spec.
	Spec string `json:"spec"`
	// Paths and Subjects are those on which it fails.
	Paths    []string `json:"paths,omitempty"`
	Subjects []string `json:"subjects,omitempty"`
	// From and Tests are the versions of the older server and of the tests with which it fails.
	From  []string `json:"from,omitempty"`
	Tests []string `json:"tests,omitempty"`
	// Reason says why the spec fails.
	Reason string `json:"reason"`
}

// Circumstances are those of one run of the tests.
type Circumstances struct{ Path, Subject, From, Tests string }

// Catalogue lists specs that are expected to fail.
type Catalogue []Expected

// DefaultExpected is the catalogue of the repository: specs/expected.yaml.
func DefaultExpected() (Catalogue, error) { return embedded("specs/expected.yaml", ParseExpected) }

// ParseExpected reads a catalogue. It is an error if there are unknown fields, entries without a
// spec or a reason, or unknown paths, subjects or versions.
func ParseExpected(data []byte) (Catalogue, error) {
	var c Catalogue
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return nil, err
	}
	for _, e := range c {
		if err := e.check(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (e Expected) check() error {
	switch {
	case e.Spec == "":
		return errors.New("an entry names no spec")
	case e.Reason == "":
		return fmt.Errorf("%q has no reason", e.Spec)
	}
	for _, list := range []struct {
		what   string
		values []string
		known  []string
	}{
		{"path", e.Paths, []string{reports.PathDirect, reports.PathOld, reports.PathBalancer}},
		{"subject", e.Subjects, []string{scenario.SubjectNone, scenario.SubjectBuiltin, scenario.SubjectReference}},
	} {
		for _, v := range list.values {
			if !slices.Contains(list.known, v) {
				return fmt.Errorf("%q: %s %q: want one of %q", e.Spec, list.what, v, list.known)
			}
		}
	}
	for _, v := range slices.Concat(e.From, e.Tests) {
		if !semver.IsValid(v) || semver.MajorMinor(v) != v {
			return fmt.Errorf("%q: version %q: want a minor version such as v1.36", e.Spec, v)
		}
	}
	return nil
}

// Why returns why a spec is expected to fail in these circumstances. It is empty if the spec is
// expected to pass.
func (c Catalogue) Why(spec string, in Circumstances) string {
	covers := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	for _, e := range c {
		if e.Spec == spec && covers(e.Paths, in.Path) && covers(e.Subjects, in.Subject) && covers(e.From, semver.MajorMinor(in.From)) &&
			covers(e.Tests, semver.MajorMinor(in.Tests)) {
			return e.Reason
		}
	}
	return ""
}

// Unknown returns the entries for tests of a version whose spec is not among all specs.
func (c Catalogue) Unknown(all []string, tests string) (names []string) {
	for _, e := range c {
		if slices.Contains(e.Tests, semver.MajorMinor(tests)) && !slices.Contains(all, e.Spec) {
			names = append(names, e.Spec)
		}
	}
	return names
}
