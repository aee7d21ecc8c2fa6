package invariant

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

var authorizedAlike = Invariant{
	Name:     "AuthorizedAlike",
	Grade:    GradeCore,
	Sentence: "Whether a user may do something does not depend on which apiserver is asked, nor on who serves it.",
	Source: "KEP-4020, Proxy transport between apiservers and authn: the destination authorizes the user whom the request comes from; " +
		"a group that is lost on the way, or a server's own rights, would decide otherwise",
	judge: judgeAuthorizedAlike,
}

// permission is what a user is, or is not, allowed to do. Names of objects are left out: those of the load are new each time.
type permission struct {
	user, verb string
	key
	namespace string
}

// decisions are how often it was decided, with an example of each.
type decisions struct {
	allowed      int
	firstAllowed *observation
	refused      []*observation
}

func judgeAuthorizedAlike(f *Facts) *tally {
	t := f.timely()
	begun := history.Time(0)
	if len(f.observations) > 0 {
		begun = f.observations[0].op.Start
	}
	all := map[permission]*decisions{}
	var order []permission
	early, servers := 0, map[string]bool{}
	for _, o := range f.observations {
		allowed, decided := decision(o.op)
		if !decided || o.resource == nil || !o.ready {
			continue
		}
		// Rights spread through etcd like everything else.
		if o.op.Start < later(max(begun, o.readySince), f.bounds.Staleness) {
			early++
			continue
		}
		p := permission{o.op.User, verbOf(o.op), o.resource.key, o.op.Namespace}
		d := all[p]
		if d == nil {
			d = &decisions{}
			all[p] = d
			order = append(order, p)
		}
		servers[o.op.Server] = true
		if allowed {
			d.allowed++
			d.firstAllowed = cmp.Or(d.firstAllowed, o)
		} else {
			d.refused = append(d.refused, o)
		}
	}
	refusing := 0
	for _, p := range order {
		d := all[p]
		t.verdict.Checked += d.allowed + len(d.refused)
		if len(d.refused) > 0 {
			refusing++
		}
		if d.allowed > 0 && len(d.refused) > 0 {
			t.disagree(f, d)
		}
	}
	if refusing == 0 && t.verdict.Checked > 0 {
		t.doubt("nobody was refused anything, so nobody could be refused by one server and not by another")
	}
	t.fact("kinds of requests that users were refused", refusing)
	t.fact("servers that were asked", len(servers))
	t.fact("not counted while rights spread", early)
	return t
}

// disagree shows every refusal of what was allowed elsewhere, or at another time.
func (t *tally) disagree(f *Facts, d *decisions) {
	slices.SortStableFunc(d.refused, func(a, b *observation) int { return cmp.Compare(a.op.End, b.op.End) })
	for _, o := range d.refused {
		cause := fmt.Sprintf("%s was refused what %s let it do", o.op.User, d.firstAllowed.op.Server)
		t.violation(signature{o.op.Server, "", cause}, o.op.End, o.resource.name(), func() Evidence {
			return f.show(o, o.situation, fmt.Sprintf("%s, though %s had answered the same user %d to such a request at %s",
				answer(o.op), d.firstAllowed.op.Server, d.firstAllowed.op.Status, clock(d.firstAllowed.op.Start)))
		})
	}
}

// decision says whether the answer tells that the user may, or may not, do what was asked. Only the authorizer's own words count as a refusal, since
// admission plugins answer 403 as well; and only what nobody answers before the authorizer has agreed counts as consent.
func decision(op *history.Operation) (allowed, decided bool) {
	switch {
	case op.User == "":
		return false, false
	case op.Status == http.StatusForbidden:
		return false, strings.Contains(op.Message, fmt.Sprintf("User %q cannot ", op.User))
	case succeeded(op.Status), op.Status == http.StatusConflict, op.Missing == history.MissingObject:
		return true, true
	default:
		return false, false
	}
}

// verbOf is the verb that the authorizer sees.
func verbOf(op *history.Operation) string {
	if op.Verb == history.VerbTable {
		return "list"
	}
	return op.Verb
}
