package invariant

import (
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

var answeredInKind = Invariant{
	Name:    "AnsweredInKind",
	Grade:   GradeCore,
	Outside: true,
	Sentence: "A successful response has a media type that the client accepts, and a body of the kind that the client asked for: a list, " +
		"a table, an object, the events of a watch. This holds whichever apiserver serves it.",
	Source: "RFC 9110, 12.5.1; Kubernetes API concepts, resource encodings: an apiserver that has none of the accepted types answers 406; " +
		"API conventions, types: every client decodes the kind that the verb stands for",
	judge: func(f *Facts) *tally {
		return f.judgeSuccesses(ruleInKind, func(t *tally, o *observation) {
			if kind := bodyKind(o.op); kind != "" && !slices.Contains(askedFor(o.op), o.op.Body) {
				t.violate(o, *o.situation, kind+" for "+o.op.Verb, kind+" for "+o.op.Verb, answer(o.op)+", with "+kind)
				return
			}
			got := mediaTypeOf(o.op)
			t.violate(o, *o.situation, got+" for "+o.op.Accept, got+" for "+o.op.Accept,
				answer(o.op)+", in "+got+", to a client that accepts "+o.op.Accept)
		})
	},
	pressure: []pressure{skewed, formats},
}

// answeredInFull rules on something that a client cannot see. If a list is truncated, a client that
// relies on HTTP sees a shorter list or reports an error of its own. HTTP shows truncation by the
// length or by the last chunk. A proxy hides the truncation if it ends a response properly although
// the response broke off behind the proxy.
var answeredInFull = Invariant{
	Name:     "AnsweredInFull",
	Grade:    GradeCore,
	Outside:  true,
	Sentence: "A response that ends properly is complete. If it breaks off on its way, the client can see that.",
	Source:   "RFC 9112, 8, and RFC 9113, 8.1.1: what is incomplete must not look complete; every client relies on it",
	unknown:  "its body was not decoded",
	judge: func(f *Facts) *tally {
		return f.judgeSuccesses(ruleInFull, func(t *tally, o *observation) {
			const wrong = "an incomplete response that looks complete"
			t.violate(o, *o.situation, wrong, wrong,
				answer(o.op)+" as if it were complete, with a body that is truncated or damaged")
		})
	},
	pressure: []pressure{skewed, lists},
}

// judgeSuccesses applies a rule to every successful response. Error responses are left out, because
// a failing server writes them in whatever form it can.
func (f *Facts) judgeSuccesses(rule func(*history.Operation) ruling, violate func(*tally, *observation)) *tally {
	t := newTally(f)
	passedOn := 0
	for _, o := range f.observations {
		if !succeeded(o.op.Status) || o.op.Failure != history.FailureNone {
			continue
		}
		r := rule(o.op)
		if (r == rulingRight || r == rulingWrong) && o.skewed() {
			passedOn++
		}
		if t.rule(o, r) {
			violate(t, o)
		}
	}
	t.fact("responses to requests that had to be passed on", passedOn)
	return t
}

// askedFor returns the kinds of bodies that a success may have; none if it may have any. The answer
// to a request for a subresource can be of the subresource's own kind.
func askedFor(op *history.Operation) []history.Body {
	if op.GVR.Resource == "" || op.Subresource != "" || op.AsksForUpgrade() {
		return nil
	}
	switch op.Verb {
	case "get", "create", "update", "patch":
		return []history.Body{history.BodyObject}
	case "list":
		return []history.Body{history.BodyList}
	case history.VerbTable:
		return []history.Body{history.BodyTable}
	case "delete":
		return []history.Body{history.BodyObject, history.BodyStatus}
	case "watch":
		return []history.Body{history.BodyEvents}
	}
	return nil
}

// bodyKind says for people of which kind a body is, or returns "" if any kind is right.
func bodyKind(op *history.Operation) string {
	switch {
	case askedFor(op) == nil:
		return ""
	case op.Body == history.BodyNone:
		return "no body"
	}
	return "a body of the kind " + string(op.Body)
}

func ruleInKind(op *history.Operation) ruling {
	if kinds := askedFor(op); kinds != nil && !slices.Contains(kinds, op.Body) {
		return rulingWrong
	}
	if op.Accept == "" || op.Body == history.BodyNone {
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

func ruleInFull(op *history.Operation) ruling {
	switch {
	case op.Verb == "watch":
		return rulingNone
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
