package invariant

import (
	"net/http"

	"github.com/skewproof/skewproof/internal/history"
)

// answeredInFull is about what a client cannot see: a list of which the end is missing is, to one that believes HTTP, a shorter list or an error of its
// own. HTTP tells what was cut short by its length or by the end of its last chunk, and a proxy that ends what broke off behind it in good order takes that away.
var answeredInFull = Invariant{
	Name:     "AnsweredInFull",
	Grade:    GradeCore,
	Outside:  true,
	Sentence: "An answer that came to its end is whole: one that breaks off on its way is seen by the client to have broken off.",
	Source:   "RFC 9112, 8, and RFC 9113, 8.1.1: what is incomplete must not look complete; nothing works without it",
	judge:    judgeInFull,
	pressure: []pressure{skewed},
}

func judgeInFull(f *Facts) *tally {
	t := newTally()
	passedOn := 0
	for _, o := range f.observations {
		r := ruleInFull(o.op)
		if (r == rulingRight || r == rulingWrong) && o.skewed() {
			passedOn++
		}
		if t.rule(r) {
			class, _ := circumstance(f.candidates(o, o.situation), o.op.Server)
			t.violation(signature{o.op.Server, class, "a part of an answer that looks like all of it"}, o.op.End, o.resource.name(), func() Evidence {
				return f.show(o, o.situation, answer(o.op)+" as though that were all, with a body that is cut off or spoilt")
			})
		}
	}
	t.fact("answers to what had to be passed on", passedOn)
	return t
}

// ruleInFull rules on an answer that is none of an error. What nobody looked into is unknown where there was a form to be looked for.
func ruleInFull(op *history.Operation) ruling {
	if op.Status < http.StatusOK || op.Status >= http.StatusMultipleChoices || op.Failure != history.FailureNone || op.Verb == "watch" {
		return rulingNone
	}
	switch {
	case op.Content == history.ContentWhole:
		return rulingRight
	case op.Content == history.ContentBroken:
		return rulingWrong
	case op.Body == history.BodyList || op.Body == history.BodyTable:
		return rulingUnknown
	default:
		return rulingNone
	}
}
