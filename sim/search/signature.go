package search

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/reports"
)

// Violation is a violation in a run.
type Violation struct {
	reports.Signature
	// Sentence is that of the evidence, and CauseInFull its cause, with the servers' own names.
	Sentence, CauseInFull string
}

// violations lists the violations of a run, each signature once.
func violations(h *history.History, verdicts []invariant.Verdict) []Violation {
	var all []Violation
	for i := range verdicts {
		v := &verdicts[i]
		if v.Outcome != invariant.OutcomeFail {
			continue
		}
		for j := range v.Evidence {
			e := &v.Evidence[j]
			one := Violation{reports.Signature{Invariant: v.Name, Grade: v.Grade, Cause: cause(h, e), Asked: requestKind(e)}, e.Sentence, e.Cause}
			if one.Asked == reports.PlainRequest {
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
		if c.Server != e.Asked && !discoveryFails(c.Obstacle) {
			return text
		}
	}
	return strings.Replace(text, "out of reach", "its discovery failing", 1)
}

// discoveryFails reports whether a server could be reached, and only its discovery documents failed.
func discoveryFails(obstacle string) bool {
	for _, o := range strings.Split(obstacle, "; ") {
		if !strings.Contains(o, ", "+string(scenario.BreakDiscovery)+" ") {
			return false
		}
	}
	return true
}

var word = regexp.MustCompile(`[A-Za-z0-9]+`)

// anonymous writes S for every server of a cause, and one S for a list of servers.
func anonymous(cause string, servers []history.Server) string {
	text := word.ReplaceAllStringFunc(cause, func(w string) string {
		if slices.ContainsFunc(servers, func(s history.Server) bool { return s.Name == w }) {
			return "S"
		}
		return w
	})
	for strings.Contains(text, "S, S") {
		text = strings.ReplaceAll(text, "S, S", "S")
	}
	return text
}

func requestKind(e *invariant.Evidence) reports.RequestKind {
	switch {
	case len(e.Operations) == 0:
	case e.Operations[0].Client == workload.ClientForger:
		return reports.ForgedRequest
	case e.Operations[0].Subresource != "":
		return reports.SubresourceRequest
	}
	return reports.PlainRequest
}

// lately is how long before a violation its cause may have happened.
const lately = 30 * time.Second

// circumstance says whose process started or ended shortly before a violation. That time begins
// with the first fault that was on in it.
func circumstance(h *history.History, e *invariant.Evidence) reports.Circumstance {
	if len(e.Operations) == 0 {
		return reports.CircumstanceNone
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
			return reports.CircumstanceAsked
		case slices.ContainsFunc(e.Candidates, func(c invariant.Candidate) bool { return c.Server == l.Server }):
			serving = true
		default:
			other = true
		}
	}
	switch {
	case serving:
		return reports.CircumstanceServing
	case other:
		return reports.CircumstanceOther
	}
	return reports.CircumstanceNone
}
