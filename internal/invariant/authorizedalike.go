package invariant

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/sim/recorded"
)

var authorizedAlike = Invariant{
	Name:     "AuthorizedAlike",
	Grade:    GradeCore,
	Sentence: "The permissions of a user depend neither on the asked apiserver nor on the apiserver that serves the request.",
	Source: "KEP-4020, Proxy transport between apiservers and authn: the destination authorizes the user who sent the request; " +
		"a lost group, or the rights of a server, would lead to another decision",
	judge:   judgeAuthorizedAlike,
	answers: anyAnswer,
}

// nodePrefix begins the names of kubelets (k8s.io/kubernetes, pkg/auth/nodeidentifier).
const nodePrefix = "system:node:"

// permission is something that a user may or may not do. It has no object name, because the load
// makes new objects all the time.
type permission struct {
	user, verb string
	key
	namespace string
}

func permissionOf(o *observation) permission {
	p := permission{o.op.User, o.op.Verb, o.resource.key, o.op.Namespace}
	if p.verb == history.VerbTable {
		p.verb = "list"
	}
	return p
}

// decisions holds the allowed and the refused requests for one permission.
type decisions struct{ allowed, refused []*observation }

func judgeAuthorizedAlike(f *Facts) *tally {
	t := newTimedTally(f)
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
		if o.op.Start < later(max(begun, o.readySince), f.bounds.Staleness) { // RBAC objects spread through etcd, too
			early++
			t.rule(o, rulingEarly)
			continue
		}
		p := permissionOf(o)
		d := all[p]
		if d == nil {
			d = &decisions{}
			all[p] = d
			order = append(order, p)
		}
		servers[o.op.Server] = true
		if allowed {
			d.allowed = append(d.allowed, o)
		} else {
			d.refused = append(d.refused, o)
		}
	}
	refusing := 0
	for _, p := range order {
		d := all[p]
		for _, o := range d.allowed {
			t.rule(o, rulingRight)
		}
		if len(d.refused) > 0 {
			refusing++
		}
		t.ruleRefusals(d)
	}
	if refusing == 0 && t.verdict.Checked > 0 {
		t.doubt("no user was refused anything, so no refusal could depend on the server")
	}
	t.fact("kinds of requests that users were refused", refusing)
	t.fact("servers that were asked", len(servers))
	t.fact("not counted while rights spread", early)
	return t
}

// ruleRefusals rules on each refusal of a permission that another server allowed, or that was
// allowed at another time.
func (t *tally) ruleRefusals(d *decisions) {
	slices.SortStableFunc(d.refused, func(a, b *observation) int { return cmp.Compare(a.op.End, b.op.End) })
	for _, o := range d.refused {
		served := o.local == claimYes || len(o.capable) > 0 // otherwise 403 keeps nothing from the user
		if len(d.allowed) == 0 || !served {
			t.rule(o, rulingRight)
			continue
		}
		t.rule(o, rulingWrong)
		other := d.allowed[0].op
		wrong := "refused what another server allowed"
		if slices.ContainsFunc(d.allowed, func(by *observation) bool { return t.facts.nodeRulesDiffer(o, by) }) {
			wrong = "a node was refused by the rules of its server's version"
		}
		t.violate(o, *o.situation, wrong, fmt.Sprintf("%s was refused what %s allowed", o.op.User, other.Server),
			fmt.Sprintf("%s, while %s answered %d to the same user for such a request at %s",
				answer(o.op), other.Server, other.Status, clock(other.Start)))
	}
}

// nodeRulesDiffer reports whether the rules for nodes, which are compiled into each server, explain
// why one server refuses a node what another one allows: by the recordings, the version of the
// server that decided about the refused request does not permit it, and the other version does. A
// refusal that they do not explain may come from an identity that was lost on the way.
func (f *Facts) nodeRulesDiffer(refused, allowed *observation) bool {
	if !strings.HasPrefix(refused.op.User, nodePrefix) {
		return false
	}
	wrongly, known := f.permitsNodes(refused)
	rightly, _ := f.permitsNodes(allowed)
	return known && !wrongly && rightly
}

// permitsNodes reports whether the version of the server that decided about a request permits it to
// nodes, and whether this is recorded. A server that passed the request on did not decide.
func (f *Facts) permitsNodes(o *observation) (permits, recording bool) {
	server := o.op.Server
	for _, h := range o.hops {
		if atPeer(o.op, h) {
			server = h.Server
		}
	}
	by := f.byName[server]
	if by == nil {
		return false, false
	}
	version := by.line.at(o.op.Start).behaves()
	rights, known := f.nodeRights[version]
	if !known {
		rights, _, _ = recorded.BehaviourOf(version) // nil if it is not recorded
		f.nodeRights[version] = rights
	}
	kind := recorded.Kind{Group: o.op.GVR.Group, Resource: o.op.GVR.Resource, Subresource: o.op.Subresource}
	return rights != nil && slices.Contains(rights.Allowed(recorded.Node, kind), o.op.Verb), rights != nil
}

// decision says whether the response shows that the user has the permission. Only the message of
// the authorizer counts as a refusal, since admission plugins answer 403 as well. Only a response
// that cannot come before authorization counts as permission.
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
