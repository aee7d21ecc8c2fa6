package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

// headline is the one sentence for a reader who reads only one.
func headline(r RunReport) string {
	switch r.Verdict.Outcome {
	case invariant.OutcomeFail, invariant.OutcomeKnown:
		if i, ok := worst(r); ok {
			return failureSentence(r, i) + asItMust(r) + leftOut(r)
		}
		return "an invariant was violated." + asItMust(r) + leftOut(r)
	case invariant.OutcomePass:
		return passSentence(r) + leftOut(r)
	default:
		return r.besides(inconclusiveSentence(r))
	}
}

// asItMust says that the run is a negative control, which had to fail. It is "" for other runs.
func asItMust(r RunReport) string {
	if !slices.ContainsFunc(r.Invariants, func(i Invariant) bool { return i.Control }) {
		return ""
	}
	return " This run is the negative control of the scenario, and it failed as it must."
}

// besides adds to the sentence of an inconclusive run what was violated, because that stands
// whatever is undecided.
func (r RunReport) besides(sentence string) string {
	if i, ok := worst(r); ok && r.Standing().Violated {
		return sentence + " Besides, " + failureSentence(r, i)
	}
	return sentence
}

// worst is the failed invariant for the headline. It must count, or the scenario must test it.
// worst prefers an invariant with violations that are NEW, or else that the fewest scenarios show.
// Among equal ones it prefers an invariant that counts and that the scenario tests.
func worst(r RunReport) (Invariant, bool) {
	var found Invariant
	ok := false
	for _, i := range r.Invariants {
		if i.Outcome != invariant.OutcomeFail || !r.Decides(i) && !i.About {
			continue
		}
		if !ok || cmp.Or(cmp.Compare(i.commonness(), found.commonness()), -truth(r.Decides(i), r.Decides(found)),
			-truth(i.About, found.About)) < 0 {
			found, ok = i, true
		}
	}
	return found, ok
}

// truth compares false with true.
func truth(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// commonness is the commonness of the least common violation.
func (i Invariant) commonness() int {
	if len(i.Evidence) == 0 {
		return 0
	}
	return i.Evidence[0].commonness() // the first evidence is the least common
}

func failureSentence(r RunReport, i Invariant) string {
	if len(i.Evidence) == 0 {
		return fmt.Sprintf("%s was violated %s.", i.Name, times(i.Violations))
	}
	largest := i.Evidence[0]
	for _, e := range i.Evidence[1:] {
		if e.commonness() == largest.commonness() && e.Count > largest.Count {
			largest = e
		}
	}
	if largest.answers() {
		return r.attributedOf(i, largest, answersSentence(r, largest))
	}
	first := i.Evidence[0]
	return r.attributedOf(i, first, fmt.Sprintf("%s was violated %s, for example: %s", i.Name, times(i.Violations), sentence(first.Sentence)))
}

// answers reports whether the evidence is only about wrong answers to requests that a server could
// serve. Other evidence is described best by its own sentence.
func (e Evidence) answers() bool {
	return e.Signature.Wrong == "" && e.Asked != "" && len(e.Resources) > 0 && len(e.Requests) == 1 && len(e.Candidates) > 0
}

// answersSentence says "while b→a was cut, b answered 404 to 213 requests for X, which a was
// serving".
func answersSentence(r RunReport, e Evidence) string {
	what := conjunction(e.Resources)
	if e.ResourcesTotal > 2 {
		what = fmt.Sprintf("%d resources (%s among them)", e.ResourcesTotal, e.Resources[0])
	}
	were := "was"
	if len(e.capable()) > 1 {
		were = "were"
	}
	return fmt.Sprintf("%s, %s %s to %s for %s, which %s %s serving.", circumstances(r, e.FirstSeconds, e.LastSeconds),
		conjunction(e.servers()), e.answered(), counted(e.Count, "request"), what, conjunction(e.capable()), were)
}

func (e Evidence) answered() string {
	if q := e.Requests[0]; q.Status != 0 && q.Failure == history.FailureNone {
		return "answered " + strconv.Itoa(q.Status)
	}
	return "gave no complete response"
}

func (e Evidence) capable() []string {
	var names []string
	for _, c := range e.Candidates {
		name := c.Server
		if name == e.Asked {
			name += " itself"
		}
		names = appendNew(names, name)
	}
	return names
}

func passSentence(r RunReport) string {
	held := 0
	for _, i := range r.Invariants {
		if i.Outcome == invariant.OutcomePass {
			held++
		}
	}
	s := fmt.Sprintf("%d of %s held over %s to %s", held, counted(len(r.Invariants), "invariant"),
		counted(r.Metadata.Operations, "request"), counted(len(r.Servers), "server"))
	if len(r.Verdict.Failed) > 0 {
		s += "; beyond the KEP, " + conjunction(r.Verdict.Failed) + " did not"
	}
	if n := len(r.Verdict.Inconclusive); n > 0 {
		s += fmt.Sprintf("; %d had nothing to judge or too little", n)
	}
	return s + "."
}

// leftOut says how many wrong answers do not count because the machine was overloaded. It is "" if
// there are none. A verdict without this figure would look better than the run was.
func leftOut(r RunReport) string {
	var parts []string
	most := 0
	for _, i := range r.Invariants {
		if i.Overloaded > 0 {
			parts = append(parts, fmt.Sprintf("%s (%s)", counted(i.Overloaded, "wrong answer"), i.Name))
			most = max(most, i.Overloaded)
		}
	}
	switch {
	case len(parts) == 0:
		return ""
	case len(parts) > 3:
		return fmt.Sprintf(" Left out, because the machine was overloaded: up to %s by each of %d invariants.", counted(most, "wrong answer"),
			len(parts))
	default:
		return " Left out, because the machine was overloaded: " + conjunction(parts) + "."
	}
}

func inconclusiveSentence(r RunReport) string {
	if r.Metadata.Unjudged != "" {
		return "not judged: " + sentence(r.Metadata.Unjudged)
	}
	for _, i := range r.Invariants {
		if i.Control && i.Outcome != invariant.OutcomeFail {
			return sentence(i.Reason)
		}
	}
	if r.Metadata.Error != "" { // the reason of all that was not proved
		return sentence(invariant.EndedEarly(r.Metadata.Error))
	}
	for _, i := range r.Invariants {
		if i.Outcome == invariant.OutcomeInconclusive && i.matters() && r.Decides(i) {
			return fmt.Sprintf("the run proves nothing about %s: %s", i.Name, sentence(i.Reason))
		}
	}
	return "nothing was proved either way."
}

// circumstances says what happened in a window: the active faults, and the processes that were
// replaced or restarted meanwhile. Without any fault, it names the steps.
func circumstances(r RunReport, start, end Seconds) string {
	var faults []Fault
	since := start
	for _, f := range r.Faults {
		if f.overlaps(start, end) {
			faults = append(faults, f)
			since = min(since, f.StartSeconds)
		}
	}
	if clauses := faultClauses(faults); len(clauses) > 0 {
		for _, l := range r.Timeline.Lanes {
			if clause := processClause(l, since, end); clause != "" {
				clauses = appendNew(clauses, clause)
			}
		}
		return "while " + conjunction(clauses)
	}
	var steps []string
	before, within := "", true
	for _, s := range r.Steps {
		switch {
		case !s.Disturbs || s.StartSeconds > end:
		case s.EndSeconds >= start:
			steps = append(steps, "“"+s.Sentence+"”")
			within = within && (len(steps) > 1 || s.StartSeconds <= start)
		default:
			before = s.Sentence
		}
	}
	switch {
	case len(steps) > 0 && !within && before != "": // the window began before these steps, so the steps are not the cause
		return "after “" + before + "”"
	case len(steps) > 0 && !within:
		return "from the start on"
	case len(steps) > 3:
		return fmt.Sprintf("during %d steps, %s the first", len(steps), steps[0])
	case len(steps) > 0:
		return "during " + conjunction(steps)
	case before != "":
		return "after “" + before + "”"
	default:
		return "with nothing disturbing the cluster"
	}
}

// faultClauses say what faults did. Faults with the same effect share a clause: "b→a and c→a were
// cut".
func faultClauses(faults []Fault) []string {
	type did struct{ one, many string }
	var order []did
	targets := map[did][]string{}
	for _, f := range faults {
		one, many := f.did()
		d := did{one, many}
		if targets[d] == nil {
			order = append(order, d)
		}
		target := f.Target()
		if f.Kind == "break-discovery" { // the link is the one to its peers, whatever servers they are
			target = "a discovery document of " + f.To
		}
		targets[d] = appendNew(targets[d], target)
	}
	var clauses []string
	for _, d := range order {
		what := d.one
		if len(targets[d]) > 1 {
			what = d.many
		}
		clauses = append(clauses, conjunction(targets[d])+" "+what)
	}
	return clauses
}

// did says what the fault did, for one target and for several.
func (f Fault) did() (one, many string) {
	switch {
	case f.Kind == "cut":
		return "was cut", "were cut"
	case f.Kind == "kill":
		return "was killed", "were killed"
	case f.Kind == "pause":
		return "was paused", "were paused"
	case f.Kind == "break-discovery":
		return "failed for its peers", "failed for their peers"
	case f.Kind == history.FaultProxyOff && f.Server != "":
		return "had its proxy switched off", "had their proxies switched off"
	case (f.Kind == history.FaultMisconfiguration || f.Kind == history.FaultProxyOff) && f.Detail != "":
		if f.Server != "" {
			return "was misconfigured (" + f.Detail + ")", "were misconfigured (" + f.Detail + ")"
		}
		return "could not work (" + f.Detail + ")", "could not work (" + f.Detail + ")"
	default:
		return "had " + f.Kind, "had " + f.Kind
	}
}

// processClause says that a server's process was replaced in the window. It is "" if it was not.
func processClause(l Lane, start, end Seconds) string {
	for n, b := range l.States {
		if b.State != history.StateStarting || n == 0 || b.StartSeconds < start || b.StartSeconds > end {
			continue
		}
		if before := l.States[n-1].Version; before != b.Version {
			return l.Server + " was replaced by " + b.Version
		}
		return l.Server + " was restarted"
	}
	return ""
}
