package invariant

import (
	"net/http"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

var objectsAgree = Invariant{
	Name:  "ObjectsAgree",
	Grade: GradeCore,
	Sentence: "An object that a peer returns arrives at the client as the peer itself returns it: the same bytes, and the same headers " +
		"except those that each server adds. The object that a write would make (dryRun=All) has the same fields, " +
		"except for its times, and the same headers.",
	Source: "KEP-4020, Goals: a request is handled by an apiserver that can serve it, whichever is asked, and its client gets the answer of " +
		"that one",
	judge:    judgeObjectsAgree,
	pressure: []pressure{skewed, passedOn},
}

// reading identifies a state of an object as one server returns it, or what a write that is only
// tried would make of this state.
type reading struct{ server, verb, path, accept, client, version string }

func readingOf(op *history.Operation, server string) reading {
	version, _, _ := strings.Cut(op.Object, " ")
	return reading{server, op.Verb, op.Path, op.Accept, op.Client, version}
}

// judgeObjectsAgree compares answers about the same state of an object: one that a peer gave for
// the asked server, and one that this peer gave to its own client. The load sends both requests,
// one right after the other. Requests with the same verb and path have the same body.
func judgeObjectsAgree(f *Facts) *tally {
	t := newTally(f)
	own := map[reading]*history.Operation{}
	for o := range f.identified() {
		if o.op.Object != "" && len(o.hops) > 0 && !o.forwarded() {
			own[readingOf(o.op, o.op.Server)] = o.op
		}
	}
	alone := 0
	for o := range f.identified() {
		if o.op.Object == "" || !o.forwarded() {
			continue
		}
		var direct *history.Operation
		if peer := answeringPeer(o); peer != "" {
			direct = own[readingOf(o.op, peer)]
		}
		if direct == nil {
			alone++
			continue
		}
		r := rulingRight
		part, what := difference(o.op, direct)
		if part != "" {
			r = rulingWrong
		}
		t.ruleHops(r, o, noDetail, "not as the peer returns it: "+part, "not as the peer returns it ("+part+")",
			"to its own client, "+direct.Server+" returned this object otherwise: "+what)
	}
	if t.verdict.Checked == 0 {
		t.doubt("no object was asked for both at a peer and through another server")
	}
	t.fact("objects from a peer and through another server", t.verdict.Checked)
	t.fact("objects through another server only, in their state", alone)
	return t
}

// answeringPeer returns the only peer that answered with success, or "".
func answeringPeer(o *observation) (peer string) {
	for _, h := range o.hops {
		if !atPeer(o.op, h) || h.Status != http.StatusOK {
			continue
		}
		if peer != "" {
			return ""
		}
		peer = h.Server
	}
	return peer
}

// difference says in what two answers with the same state of an object differ: part is "body" or
// "header NAME". Both are "" if they do not differ.
func difference(passedOn, own *history.Operation) (part, what string) {
	if passedOn.Object != own.Object {
		return "body", "with other bytes"
	}
	one, other := strings.Split(passedOn.Headers, "\n"), strings.Split(own.Headers, "\n")
	for _, line := range slices.Concat(other, one) {
		if slices.Contains(one, line) && slices.Contains(other, line) {
			continue
		}
		name, _, _ := strings.Cut(line, ":")
		return "header " + name, "with " + headerLine(other, name) + ", and not with " + headerLine(one, name)
	}
	return "", ""
}

// headerLine is the line of a header among lines, in words.
func headerLine(lines []string, name string) string {
	for _, line := range lines {
		if strings.HasPrefix(line, name+":") {
			return "the header " + line
		}
	}
	return "no header " + name
}
