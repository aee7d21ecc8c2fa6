package reports

import (
	"fmt"
	"strings"
)

// page lists the specs of every class, except of those that passed, and the runs.
func (u UpstreamTests) page() page {
	m, classes := u.Metadata, &table{Head: []column{{Name: "class"}, {Name: "specs", Number: true}}}
	p := page{
		Title: "Kubernetes' own tests", Lead: capital(m.Tells()) + ". A failure counts only if the spec passes directly at the same server.",
		Outcome: u.Result.Outcome(), Sentence: u.Sentence, Sections: []section{{Heading: "Specs", Table: classes}},
		Facts: [][2]string{{"Path", m.Path}, {"Subject", m.Subject}, {"Servers", m.From + " and " + m.To}, {"Tests", m.Tests}}, Tested: m.Tested,
		Reproduce: u.Reproduce, SkewproofVersion: m.SkewproofVersion, Document: UpstreamJSON, TypeMeta: u.TypeMeta, JUnit: upstreamJUnit(u),
	}
	if m.Focus != "" {
		p.Facts = append(p.Facts, [2]string{"Focus", m.Focus})
	}
	if m.Baseline != "" {
		p.Facts = append(p.Facts, [2]string{"Direct results", m.Baseline})
	}
	p.Facts = m.facts(p.Facts)
	for _, class := range SpecClasses {
		listed := section{Heading: capital(string(class))}
		for _, s := range u.Specs {
			if s.Class == class {
				listed.List = append(listed.List, item{Text: s.Name, Note: s.Why()})
			}
		}
		if len(listed.List) == 0 {
			continue
		}
		classes.add(string(class), fmt.Sprint(len(listed.List)))
		if class != ClassPassed { // their names are in the JSON document
			p.Sections = append(p.Sections, listed)
		}
	}
	runs, left := section{Heading: "Runs"}, section{Heading: "Not chosen"}
	for _, r := range u.Runs {
		text := fmt.Sprintf("%s, %s, %s", r.Path, r.Subject, lasting(r.DurationSeconds))
		for _, v := range r.Violated {
			text += "; violated " + v
		}
		runs.List = append(runs.List, item{text, firstLine(r.Trouble), r.Directory + "/" + HTMLFile})
	}
	for _, l := range u.Left {
		left.List = append(left.List, item{Text: counted(l.Specs, "spec") + ": " + l.Reason})
	}
	p.Sections = append(p.Sections, runs)
	if len(left.List) > 0 {
		p.Sections = append(p.Sections, left)
	}
	return p
}

// Why is the beginning of the first line of the reason why a spec is in its class. It is empty if
// there is no reason to give.
func (s UpstreamSpec) Why() string {
	switch {
	case s.Class == ClassExpected || s.Class == ClassStale:
		return s.Expected
	case s.Class == ClassGained:
		return "directly: " + firstLine(s.DirectMessage)
	}
	return firstLine(s.Message)
}

// Tells says in words what was tested.
func (m UpstreamMetadata) Tells() string {
	of := fmt.Sprintf("Kubernetes' own tests %s ", m.Tests)
	switch m.Path {
	case PathDirect:
		return of + fmt.Sprintf("directly at a server %s beside one %s, without any proxy", m.From, m.To)
	case PathOld:
		return of + fmt.Sprintf("at a server %s beside one %s, through the proxy %s", m.From, m.To, m.Subject)
	default:
		return of + fmt.Sprintf("through a load balancer, during a rolling upgrade from %s to %s, with the proxy %s", m.From, m.To, m.Subject)
	}
}

// upstreamJUnit writes the results as JUnit XML. Specs that do not count are skipped with their
// reason. If no case says why the result is not "passed", an additional case does.
func upstreamJUnit(u UpstreamTests) *JUnitSuite {
	m := u.Metadata
	suite := JUnitSuite{
		Name: "skewproof upstream-e2e", Package: strings.Join([]string{"upstream-e2e", m.Path, m.Subject}, "/"), Time: JUnitSeconds(m.DurationSeconds),
		Timestamp: NewJUnitTime(m.StartedAt),
		Properties: append([]JUnitProperty{
			{"result", string(u.Result)}, {"sentence", u.Sentence}, {"path", m.Path}, {"subject", m.Subject}, {"from", m.From}, {"to", m.To},
			{"tests", m.Tests}, {"reproduce", u.Reproduce},
		}, m.Properties()...),
	}
	red := false
	for _, s := range u.Specs {
		c := JUnitCase{Name: s.Name, Classname: suite.Package, Time: JUnitSeconds(s.DurationSeconds)}
		switch s.Class {
		case ClassFailed:
			c.Failure = &JUnitMessage{Message: s.Why(), Type: "failed", Text: s.Message}
		case ClassUnknown, ClassNotRun:
			c.Error = &JUnitMessage{Message: string(s.Class) + ": " + s.Why(), Type: "inconclusive", Text: s.Message}
		case ClassDirectly, ClassExpected, ClassSkipped:
			c.Skipped = &JUnitMessage{Message: string(s.Class) + ": " + s.Why()}
		}
		red = red || c.Failure != nil || c.Error != nil
		suite.Cases = append(suite.Cases, c)
	}
	if u.Result != ResultPassed && !red {
		suite.Cases = append(suite.Cases, JUnitCase{
			Classname: suite.Package, Name: "what the tests come to",
			Failure: &JUnitMessage{Message: string(u.Result) + ": " + u.Sentence, Type: string(u.Result)},
		})
	}
	return &suite
}
