// Package findings holds, as data, what skewproof has found in released kube-apiservers: one
// embedded YAML file for each finding. A finding has a predicate over signatures of violations, so
// that a run can say of every violation whether its cause is known.
//
// A known finding is no excuse: a run that violates the KEP fails even if the cause is known.
package findings

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/invariant"
)

// APIVersion and Kind identify a finding. [Parse] refuses any other document.
const (
	APIVersion = "skewproof/v1alpha1"
	Kind       = "Finding"
)

// Finding is one defect of released kube-apiservers, or something that goes wrong because their
// versions differ.
type Finding struct {
	// APIVersion is always [APIVersion]. Kind is always [Kind].
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Number identifies the finding. A number is never used again. The user's own findings, from a
	// file, have numbers from 1000 on.
	Number int `json:"number"`
	// Title is a few words. Symptom is what a user of the API sees, in one sentence.
	Title   string `json:"title"`
	Symptom string `json:"symptom"`
	// Impact says what the consequences are, and for whom.
	Impact string `json:"impact,omitempty"`
	// Avoid says how a user or an operator avoids the defect or its consequences.
	Avoid string `json:"avoid,omitempty"`
	// Upgrade says what the defect means for an upgrade; nil if it has no part in one.
	Upgrade *Upgrade `json:"upgrade,omitempty"`
	// Demands are the parts of KEP-4020 that the defect breaks: "G1" to "G4" (docs/findings.md), or
	// a section.
	Demands []string `json:"demands,omitempty"`
	// Versions says for people in which versions the defect was seen.
	Versions string `json:"versions,omitempty"`
	// Class says where the cause is, and thereby which subjects' violations the finding explains.
	Class Class `json:"class,omitempty"`
	// Grade is "core" if the defect violates a demand of the KEP, and "extended" if it violates
	// only invariants beyond the KEP.
	Grade invariant.Grade `json:"grade"`
	// Disclosure is "public", "private first", "withdrawn", or "undecided" in a draft.
	Disclosure Disclosure `json:"disclosure"`
	// Cause says what the code does, for people who know the code. It is Markdown.
	Cause string `json:"cause,omitempty"`
	// Upstream are the places in Kubernetes' source and documents that explain it.
	Upstream []string `json:"upstream,omitempty"`
	// Matches are predicates for the violations that the defect causes. A violation is known if any
	// of them matches. If there are none, no scenario shows the defect.
	Matches []Match `json:"matches,omitempty"`
	// Scenarios are the scenarios that show the defect with the subject builtin at Reproduce's
	// versions.
	Scenarios []string `json:"scenarios,omitempty"`
	// Chance says why the defect may not show in a run of these scenarios. It is empty if it always
	// shows. NotSimulated is true if the simulator never shows the defect.
	Chance       string `json:"chance,omitempty"`
	NotSimulated bool   `json:"notSimulated,omitempty"`
	// Reproduce is the command that shows the defect.
	Reproduce string `json:"reproduce,omitempty"`
	// Switches are the switches of the policy that remove the defect, each alone:
	// "Routing.Subresources".
	Switches []string `json:"switches,omitempty"`
	// Confirmed says how the defect was confirmed on real kube-apiservers.
	Confirmed string `json:"confirmed,omitempty"`
}

// Class says where the cause of a finding is.
type Class string

// These are all classes. A finding of the class proxy explains violations of released
// kube-apiservers only. The others explain those of every subject, because no proxy can prevent
// them.
const (
	ClassProxy       Class = ""
	ClassBesideProxy Class = "beside-proxy" // a defect of kube-apiservers outside their proxy
	ClassVersionSkew Class = "version-skew" // versions differ in what they store, permit or do
)

// String is the name of the class in words, such as "version skew".
func (c Class) String() string {
	if c == ClassProxy {
		return "proxy"
	}
	return strings.ReplaceAll(string(c), "-", " ")
}

// Disclosure says what of a finding may be published.
type Disclosure string

// These are all states of disclosure. A finding is private first if a client's input crashes or
// hangs a server, or gets past one of its security checks. Then nobody learns here how to cause it:
// the finding has three sentences, its Symptom, and the Matches by which a run names it.
const (
	Public       Disclosure = "public"
	PrivateFirst Disclosure = "private first" // it goes to security@kubernetes.io
	Withdrawn    Disclosure = "withdrawn"
	Undecided    Disclosure = "undecided" // nobody has looked at the draft yet
)

// Match is a predicate over signatures. Each field lists the values that it matches. An empty field
// matches any value. "" in a list is the empty value.
type Match struct {
	Invariants []string              `json:"invariants"`
	Mechanisms []invariant.Mechanism `json:"mechanisms,omitempty"`
	Roles      []invariant.Role      `json:"roles,omitempty"`
	Answers    []string              `json:"answers,omitempty"`
	Ways       []invariant.Way       `json:"ways,omitempty"`
	Reach      []invariant.Reach     `json:"reach,omitempty"`
	Wrong      []string              `json:"wrong,omitempty"`
	Obstacles  []invariant.Obstacle  `json:"obstacles,omitempty"`
	Before     []invariant.Obstacle  `json:"before,omitempty"`
	Changes    []invariant.Change    `json:"changes,omitempty"`
	Since      []invariant.Since     `json:"since,omitempty"`
	Targets    []invariant.Target    `json:"targets,omitempty"`
	Started    []invariant.Started   `json:"started,omitempty"`
	Elsewhere  []invariant.Obstacle  `json:"elsewhere,omitempty"`
	Extensions []invariant.Extension `json:"extensions,omitempty"`
	Twins      []invariant.Twin      `json:"twins,omitempty"`
	// Setups are parts of a setup. A setup matches if it has one of them.
	Setups []string `json:"setups,omitempty"`
}

// Takes reports whether the predicate matches the signature.
func (m Match) Takes(s invariant.Signature) bool {
	in := func(n int, found bool) bool { return n == 0 || found }
	return slices.Contains(m.Invariants, s.Invariant) &&
		in(len(m.Mechanisms), slices.Contains(m.Mechanisms, s.Mechanism)) &&
		in(len(m.Roles), slices.Contains(m.Roles, s.Roles)) &&
		in(len(m.Answers), slices.Contains(m.Answers, s.Answer)) &&
		in(len(m.Ways), slices.Contains(m.Ways, s.Way)) &&
		in(len(m.Reach), slices.Contains(m.Reach, s.Reach)) &&
		in(len(m.Wrong), slices.Contains(m.Wrong, s.Wrong)) &&
		in(len(m.Obstacles), slices.Contains(m.Obstacles, s.Obstacle)) &&
		in(len(m.Before), slices.Contains(m.Before, s.Before)) &&
		in(len(m.Changes), slices.Contains(m.Changes, s.Change)) &&
		in(len(m.Since), slices.Contains(m.Since, s.Since)) &&
		in(len(m.Targets), slices.Contains(m.Targets, s.Target)) &&
		in(len(m.Started), slices.Contains(m.Started, s.Started)) &&
		in(len(m.Elsewhere), slices.Contains(m.Elsewhere, s.Elsewhere)) &&
		in(len(m.Extensions), slices.Contains(m.Extensions, s.Extension)) &&
		in(len(m.Twins), slices.Contains(m.Twins, s.Twin)) &&
		in(len(m.Setups), slices.ContainsFunc(m.Setups, func(part string) bool {
			return part != "" && strings.Contains(s.Setup, part) || part == "" && s.Setup == ""
		}))
}

// Explains reports whether the finding is known to cause violations with this signature.
func (f Finding) Explains(s invariant.Signature) bool {
	return slices.ContainsFunc(f.Matches, func(m Match) bool { return m.Takes(s) })
}

// Catalogue is a set of findings, sorted by number. The zero value has no findings. It is safe for
// concurrent use after it is made.
type Catalogue []Finding

//go:embed *.yaml
var files embed.FS

// All returns the findings of this repository.
var All = sync.OnceValue(func() Catalogue {
	c, err := read(files)
	if err != nil {
		panic(err) // the files are embedded, and a test reads them
	}
	return c
})

func read(from fs.FS) (Catalogue, error) {
	names, err := fs.Glob(from, "*.yaml")
	if err != nil {
		return nil, err
	}
	var all Catalogue
	for _, name := range names {
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return nil, err
		}
		f, err := Parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Finding) int { return a.Number - b.Number })
	for i := 1; i < len(all); i++ {
		if all[i].Number == all[i-1].Number {
			return nil, fmt.Errorf("two findings have the number %d: %q and %q", all[i].Number, all[i-1].Title, all[i].Title)
		}
	}
	return all, nil
}

// Parse reads one finding. It refuses unknown fields, because a misspelt field would widen the
// predicate. It also refuses a predicate that matches every signature of an invariant.
func Parse(data []byte) (Finding, error) {
	var f Finding
	if err := yaml.UnmarshalStrict(data, &f); err != nil {
		return Finding{}, fmt.Errorf("read a finding: %w", err)
	}
	return f, f.validate()
}

func (f Finding) validate() error {
	switch {
	case f.APIVersion != APIVersion || f.Kind != Kind:
		return fmt.Errorf("apiVersion %q, kind %q: a finding has %q and %q", f.APIVersion, f.Kind, APIVersion, Kind)
	case f.Number <= 0:
		return fmt.Errorf("number %d: a finding has one of 1 or more", f.Number)
	case f.Title == "" || f.Symptom == "":
		return fmt.Errorf("finding %d has no title or no symptom", f.Number)
	case f.Grade != invariant.GradeCore && f.Grade != invariant.GradeExtended:
		return fmt.Errorf("finding %d: grade %q; it is core or extended", f.Number, f.Grade)
	case !slices.Contains([]Disclosure{Public, PrivateFirst, Withdrawn, Undecided}, f.Disclosure):
		return fmt.Errorf("finding %d: disclosure %q; it is %q, %q, %q or %q", f.Number, f.Disclosure, Public, PrivateFirst, Withdrawn, Undecided)
	case !slices.Contains([]Class{ClassProxy, ClassBesideProxy, ClassVersionSkew}, f.Class):
		return fmt.Errorf("finding %d: class %q; it is %q, %q, or left out for a defect of the proxy",
			f.Number, string(f.Class), string(ClassBesideProxy), string(ClassVersionSkew))
	case f.Disclosure == PrivateFirst && !f.withholds():
		return fmt.Errorf("finding %d is %s: the symptom has three sentences, which say what happens, in which versions, and how to avoid it. "+
			"Leave out every field that says how to cause it: all but demands and matches", f.Number, PrivateFirst)
	}
	if err := f.Upgrade.validate(); err != nil {
		return fmt.Errorf("finding %d: upgrade: %w", f.Number, err)
	}
	known := invariant.All()
	for i, m := range f.Matches {
		if len(m.Invariants) == 0 {
			return fmt.Errorf("finding %d, match %d: names no invariant", f.Number, i+1)
		}
		for _, name := range m.Invariants {
			if !slices.ContainsFunc(known, func(i invariant.Invariant) bool { return i.Name == name }) {
				return fmt.Errorf("finding %d, match %d: there is no invariant %q", f.Number, i+1, name)
			}
		}
		if len(m.Mechanisms) == 0 || len(m.Answers)+len(m.Wrong) == 0 {
			return fmt.Errorf("finding %d, match %d is too wide: it must name mechanisms, and answers or what is wrong", f.Number, i+1)
		}
	}
	return nil
}

var sentenceEnds = regexp.MustCompile(`[.!?](\s|$)`)

// withholds reports whether a finding says nothing but its three sentences.
func (f Finding) withholds() bool {
	said := Finding{
		APIVersion: f.APIVersion, Kind: f.Kind, Number: f.Number, Title: f.Title, Symptom: f.Symptom, Demands: f.Demands, Grade: f.Grade,
		Disclosure: f.Disclosure, Matches: f.Matches,
	}
	return len(sentenceEnds.FindAllString(f.Symptom, -1)) == 3 && reflect.DeepEqual(f, said)
}

// ReadFile reads the user's own findings: one or more YAML documents.
func ReadFile(path string) (Catalogue, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read findings: %w", err)
	}
	var all Catalogue
	for i, document := range strings.Split("\n"+string(data), "\n---") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		f, err := Parse([]byte(document))
		if err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", path, i+1, err)
		}
		if f.Number < leastOwn {
			return nil, fmt.Errorf("%s: finding %d of one's own: give it a number of %d or more", path, f.Number, leastOwn)
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no finding", path)
	}
	return all, nil
}

// leastOwn is the smallest number of a user's own finding.
const leastOwn = 1000

// Expected returns the findings that every run of the scenario with the subject on that backend
// shows.
func (c Catalogue) Expected(scenario, subject, backend string) Catalogue {
	return slices.DeleteFunc(slices.Clone(c), func(f Finding) bool {
		return !released(subject) || !slices.Contains(f.Scenarios, scenario) || f.Chance != "" || f.NotSimulated && backend == "sim"
	})
}

// released reports whether the subject, or the policy of the simulator, is the proxy of a released
// kube-apiserver.
func released(subject string) bool {
	return subject == "builtin" || strings.HasPrefix(subject, "upstream-")
}

// Explain returns the first finding that explains a violation with this signature.
func (c Catalogue) Explain(s invariant.Signature) (Finding, bool) {
	for _, f := range c {
		if f.Explains(s) {
			return f, true
		}
	}
	return Finding{}, false
}

// For returns the findings that can explain a violation of a subject, or of a policy of the
// simulator. It returns all findings for released kube-apiservers. For any other proxy, and for
// "none", it returns those that are not in the proxy: any other violation of the reference is NEW,
// even if a released version has the same defect.
func For(subject string) Catalogue {
	if released(subject) {
		return All()
	}
	return slices.DeleteFunc(slices.Clone(All()), func(f Finding) bool { return f.Class == ClassProxy })
}

// Without returns the catalogue without one finding.
func (c Catalogue) Without(number int) Catalogue {
	return slices.DeleteFunc(slices.Clone(c), func(f Finding) bool { return f.Number == number })
}
