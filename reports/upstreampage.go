package reports

import (
	"fmt"
	"io"
	"strings"
)

var (
	upstreamPage = newPage("upstream/", "upstream")
	upstreamHead = newHead(nil)
)

// upstreamDocument is the input of the template.
type upstreamDocument struct {
	UpstreamTests
	head
	Classes []upstreamClass
	JSON    string
}

// upstreamClass is the specs of one class that has any.
type upstreamClass struct {
	SpecClass
	Specs []UpstreamSpec
	// Listed is false for specs that passed, because their names are in the JSON document.
	Listed bool
}

// byClass are the classes that have specs, in the order of [SpecClasses].
func (u UpstreamTests) byClass() (all []upstreamClass) {
	for _, class := range SpecClasses {
		c := upstreamClass{SpecClass: class, Listed: class != ClassPassed}
		for _, s := range u.Specs {
			if s.Class == class {
				c.Specs = append(c.Specs, s)
			}
		}
		if len(c.Specs) > 0 {
			all = append(all, c)
		}
	}
	return all
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

// WriteUpstreamHTML writes the results as one self-contained page without scripts.
func WriteUpstreamHTML(w io.Writer, u UpstreamTests) error {
	return writePage(w, upstreamPage, upstreamDocument{u, upstreamHead, u.byClass(), UpstreamJSON})
}

// WriteUpstreamText writes the results for a terminal, without files.
func WriteUpstreamText(w io.Writer, u UpstreamTests, opts SummaryOptions) error {
	t := &terminal{SummaryOptions: SummaryOptions{Color: opts.Color}}
	t.verdict(u.Result.Outcome(), u.Sentence)
	fmt.Fprintf(t, "%s\n\n", plain(capital(u.Metadata.Tells())))
	u.Metadata.summarize(t)
	for _, c := range u.byClass() {
		fmt.Fprintf(t, "%5d  %s\n", len(c.Specs), c.SpecClass)
	}
	for _, c := range u.byClass() {
		if !c.Listed {
			continue
		}
		fmt.Fprintf(t, "\n%s:\n", capital(string(c.SpecClass)))
		for _, s := range c.Specs {
			fmt.Fprintf(t, "  %s\n", plain(s.Name))
			if why := s.Why(); why != "" {
				fmt.Fprintf(t, "    %s\n", plain(why))
			}
		}
	}
	if len(u.Left) > 0 {
		t.WriteString("\nNot chosen:\n")
		for _, l := range u.Left {
			fmt.Fprintf(t, "%5d  %s\n", l.Specs, plain(l.Reason))
		}
	}
	return t.end(w)
}

// upstreamJUnit writes the results as JUnit XML. Specs that do not count are skipped with their
// reason. If no case says why the result is not "passed", an additional case does.
func upstreamJUnit(u UpstreamTests) JUnitSuite {
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
	return suite
}

// SaveUpstream writes the results into dir as [UpstreamJSON], [UpstreamText], [UpstreamHTML] and
// [JUnitFile]. It makes dir if dir does not exist. It is as atomic as [WriteAll].
func SaveUpstream(dir string, u UpstreamTests) error {
	return save(dir, u, []rendering[UpstreamTests]{
		{UpstreamJSON, writeIndented[UpstreamTests]},
		{UpstreamText, func(w io.Writer, u UpstreamTests) error { return WriteUpstreamText(w, u, SummaryOptions{}) }},
		{UpstreamHTML, WriteUpstreamHTML},
		{JUnitFile, func(w io.Writer, u UpstreamTests) error { return upstreamJUnit(u).write(w) }},
	})
}
