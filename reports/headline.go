package reports

import (
	"fmt"
	"strconv"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

// headline is the one sentence that is read if only one is.
func headline(r RunReport) string {
	switch r.Verdict.Outcome {
	case invariant.OutcomeFail:
		if i, ok := worst(r); ok {
			return failureSentence(r, i)
		}
		return "an invariant was violated."
	case invariant.OutcomePass:
		return passSentence(r)
	default:
		return inconclusiveSentence(r)
	}
}

// worst is the failed invariant that the headline is about: one that counts, and one that the scenario exists for if
// there is any.
func worst(r RunReport) (Invariant, bool) {
	var found Invariant
	ok := false
	for _, i := range r.Invariants {
		if i.Outcome != invariant.OutcomeFail || !r.Decides(i) {
			continue
		}
		if !ok || i.About && !found.About {
			found, ok = i, true
		}
	}
	return found, ok
}

func failureSentence(r RunReport, i Invariant) string {
	if len(i.Evidence) == 0 {
		return fmt.Sprintf("%s was violated %s.", i.Name, times(i.Violations))
	}
	largest := i.Evidence[0]
	for _, e := range i.Evidence[1:] {
		if e.Count > largest.Count {
			largest = e
		}
	}
	if largest.answers() {
		return answersSentence(r, largest)
	}
	return fmt.Sprintf("%s was violated %s, first so: %s", i.Name, times(i.Violations), sentence(i.Evidence[0].Sentence))
}

// answers reports whether the evidence is that of wrong answers to requests that some server could have served. Evidence
// of another shape is told best by its own sentence.
func (e Evidence) answers() bool {
	return e.Asked != "" && len(e.Resources) > 0 && len(e.Requests) == 1 && len(e.Candidates) > 0
}

// answersSentence tells wrong answers: "while b→a was cut, b answered 404 to 213 requests for X, which a was serving".
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
		e.Asked, e.answered(), counted(e.Count, "request"), what, conjunction(e.capable()), were)
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

func inconclusiveSentence(r RunReport) string {
	for _, i := range r.Invariants {
		if i.Outcome == invariant.OutcomeInconclusive && i.matters() && r.Decides(i) {
			return fmt.Sprintf("the run proves nothing about %s: %s", i.Name, sentence(i.Reason))
		}
	}
	if r.Metadata.Error != "" {
		return "the run ended early: " + sentence(r.Metadata.Error)
	}
	return "nothing was proved either way."
}
