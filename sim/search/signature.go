package search

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
)

// Signature is what violations of one kind have in common, whatever the servers are called and whenever it happens. A search shows one violation
// of each, and shrinking keeps it.
type Signature struct {
	// Invariant is what is violated, and Grade who asks for it.
	Invariant string          `json:"invariant"`
	Grade     invariant.Grade `json:"grade"`
	// Cause is that of the verdict's evidence, with S for every server. Of one that could be reached, but not asked what it serves, it says so.
	Cause string `json:"cause"`
	// Asked is what is peculiar about the request, if anything is.
	Asked Peculiarity `json:"asked,omitempty"`
	// Circumstance says, of a plain request, whose process came or went shortly before, or while a fault was on. With Asked it tells apart
	// what has the same cause and other reasons.
	Circumstance Circumstance `json:"circumstance,omitempty"`
}

// Peculiarity is what sets a request apart from the plain ones.
type Peculiarity string

// The peculiarities.
const (
	PeculiarNothing     Peculiarity = ""
	PeculiarSubresource Peculiarity = "asked for a subresource"
	PeculiarForged      Peculiarity = "asked with a forged hop header"
)

// peculiarities are all, in the order in which they are shown.
var peculiarities = [...]Peculiarity{PeculiarNothing, PeculiarSubresource, PeculiarForged}

// Circumstance is what had happened to processes when an invariant was violated. The first that applies counts.
type Circumstance string

// The circumstances.
const (
	CircumstanceAsked   Circumstance = "after the asked server came or went"
	CircumstanceServing Circumstance = "after one that serves it came or went"
	CircumstanceOther   Circumstance = "after another server came or went"
	CircumstanceNone    Circumstance = ""
)

// String is the signature in a line.
func (s Signature) String() string {
	text := s.Invariant + ": " + s.Cause
	if s.Asked != "" {
		text += ", " + string(s.Asked)
	}
	if s.Circumstance != "" {
		text += ", " + string(s.Circumstance)
	}
	return text
}

// compare puts what the KEP demands first.
func (s Signature) compare(o Signature) int {
	return cmp.Or(cmp.Compare(s.Grade, o.Grade), cmp.Compare(s.Invariant, o.Invariant), cmp.Compare(s.Cause, o.Cause), cmp.Compare(s.Asked, o.Asked),
		cmp.Compare(s.Circumstance, o.Circumstance))
}

// Violation is one that was found in a run.
type Violation struct {
	Signature
	// Sentence is that of the evidence, and CauseInFull its cause, with the servers' own names.
	Sentence, CauseInFull string
}

// violations lists those of a run, each signature once.
func violations(h *history.History, verdicts []invariant.Verdict) []Violation {
	var all []Violation
	for i := range verdicts {
		v := &verdicts[i]
		if v.Outcome != invariant.OutcomeFail {
			continue
		}
		for j := range v.Evidence {
			e := &v.Evidence[j]
			one := Violation{Signature{Invariant: v.Invariant, Grade: v.Grade, Cause: cause(h, e), Asked: peculiarity(e)}, e.Sentence, e.Cause}
			if one.Asked == PeculiarNothing {
				one.Circumstance = circumstance(h, e)
			}
			if !slices.ContainsFunc(all, func(o Violation) bool { return o.Signature == one.Signature }) {
				all = append(all, one)
			}
		}
	}
	return all
}

// cause is that of a violation, without the names of servers.
func cause(h *history.History, e *invariant.Evidence) string {
	text := anonymous(e.Cause, h.Run.Servers)
	for _, c := range e.Candidates {
		if c.Server != e.Asked && !onlySpoiled(c.Obstacle) {
			return text
		}
	}
	return strings.Replace(text, "out of reach", "its discovery failing", 1)
}

// onlySpoiled reports whether nothing hindered a server but that its discovery documents failed.
func onlySpoiled(obstacle string) bool {
	for _, o := range strings.Split(obstacle, "; ") {
		if !strings.Contains(o, ", "+string(scenario.BreakDiscovery)+" ") {
			return false
		}
	}
	return true
}

// anonymous writes S for every server of a cause, and once for a list of them.
func anonymous(cause string, servers []history.Server) string {
	var b strings.Builder
	for len(cause) > 0 {
		n := strings.IndexFunc(cause, func(r rune) bool { return !isWord(r) })
		if n < 0 {
			n = len(cause)
		}
		if word := cause[:n]; slices.ContainsFunc(servers, func(s history.Server) bool { return s.Name == word }) {
			b.WriteByte('S')
		} else {
			b.WriteString(word)
		}
		cause = cause[n:]
		n = strings.IndexFunc(cause, isWord)
		if n < 0 {
			n = len(cause)
		}
		b.WriteString(cause[:n])
		cause = cause[n:]
	}
	text := b.String()
	for strings.Contains(text, "S, S") {
		text = strings.ReplaceAll(text, "S, S", "S")
	}
	return text
}

func isWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

func peculiarity(e *invariant.Evidence) Peculiarity {
	switch {
	case len(e.Operations) == 0:
	case e.Operations[0].Client == workload.ClientForger:
		return PeculiarForged
	case e.Operations[0].Subresource != "":
		return PeculiarSubresource
	}
	return PeculiarNothing
}

// lately is how long before a violation things may have happened that it comes from.
const lately = 30 * time.Second

// circumstance looks what had become of processes in the time before a violation, and since the first fault began that was on in that time.
func circumstance(h *history.History, e *invariant.Evidence) Circumstance {
	if len(e.Operations) == 0 {
		return CircumstanceNone
	}
	at := e.Operations[0].Start
	from := at - lately
	since := from
	for _, f := range h.Faults {
		if f.Start <= at && f.End >= from {
			since = min(since, f.Start)
		}
	}
	serving, other := false, false
	for _, l := range h.Lifecycle {
		if l.At < since || l.At > at || l.Incarnation == 1 && (l.State == history.StateStarting || l.State == history.StateReady) {
			continue
		}
		switch {
		case l.Server == e.Asked:
			return CircumstanceAsked
		case slices.ContainsFunc(e.Candidates, func(c invariant.Candidate) bool { return c.Server == l.Server }):
			serving = true
		default:
			other = true
		}
	}
	switch {
	case serving:
		return CircumstanceServing
	case other:
		return CircumstanceOther
	}
	return CircumstanceNone
}
