package invariant

import (
	"net/http"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

var answeredInKind = Invariant{
	Name:     "AnsweredInKind",
	Grade:    GradeCore,
	Outside:  true,
	Sentence: "What a client is answered comes in a media type that it said it could read, whoever serves it.",
	Source:   "RFC 9110, 12.5.1; Kubernetes API concepts, resource encodings: an apiserver that has none of the types asked for answers 406",
	judge:    judgeInKind,
	pressure: []pressure{skewed},
}

func judgeInKind(f *Facts) *tally {
	t := newTally()
	passedOn := 0
	for _, o := range f.observations {
		r := ruleInKind(o.op)
		if r != rulingNone && o.skewed() {
			passedOn++
		}
		if t.rule(r) {
			got := mediaTypeOf(o.op)
			t.violation(signature{o.op.Server, o.op.Accept, got + " for " + o.op.Accept}, o.op.End, o.resource.name(), func() Evidence {
				return f.show(o, o.situation, answer(o.op)+", in "+got+", to a client that reads "+o.op.Accept)
			})
		}
	}
	t.fact("answers to what had to be passed on", passedOn)
	return t
}

// ruleInKind rules on an answer with a body that is none of an error: those come in whatever the server that fails can write.
func ruleInKind(op *history.Operation) ruling {
	if op.Accept == "" || op.Status < http.StatusOK || op.Status >= http.StatusMultipleChoices || op.Failure != history.FailureNone {
		return rulingNone
	}
	if op.Body == history.BodyNone {
		return rulingNone
	}
	got := mediaTypeOf(op)
	for _, accepted := range strings.Split(op.Accept, ",") {
		accepted, _, _ = strings.Cut(accepted, ";")
		switch accepted = strings.ToLower(strings.TrimSpace(accepted)); {
		case accepted == got, accepted == "*/*", accepted+"-seq" == got: // a watch in CBOR is a sequence
			return rulingRight
		case strings.HasSuffix(accepted, "/*") && strings.HasPrefix(got, strings.TrimSuffix(accepted, "*")):
			return rulingRight
		}
	}
	return rulingWrong
}

func mediaTypeOf(op *history.Operation) string {
	if op.MediaType == "" {
		return "application/json"
	}
	return op.MediaType
}
