package invariant

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// The functions in this file find the deleter of an object, and the answers that misled the
// deleter. They read the servers' records of requests (history.Request). For the load, they read
// its operations.

// indexRequests sorts the requests by time.
func (f *Facts) indexRequests(h *history.History) {
	f.requests = slices.SortedFunc(slices.Values(h.Requests), func(a, b history.Request) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Server, b.Server), cmp.Compare(a.End, b.End),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Status, b.Status), cmp.Compare(a.User, b.User),
			cmp.Compare(a.Agent, b.Agent))
	})
	f.byID = map[string][]*history.Request{}
	for i := range f.requests {
		q := &f.requests[i]
		f.byID[q.ID] = append(f.byID[q.ID], q)
	}
}

// deletes reports whether a request asks a server to delete an object, by its name or with others.
func (f *Facts) deletes(verb, subresource string, gvr history.GVR, namespace, name string, o history.Object) bool {
	asks := subresource == "" && (verb == "delete" || verb == "deletecollection") || subresource == "eviction" && verb == "create"
	return asks && f.isOf(gvr, o) && (name == o.Name || name == "" && subresource == "") &&
		(namespace == o.Namespace || namespace == "" || isNamespace(o))
}

// isOf reports whether an object belongs to a resource, in any version.
func (f *Facts) isOf(gvr history.GVR, o history.Object) bool {
	of := f.gvrOf(o)
	return gvr.Group == of.Group && gvr.Resource == of.Resource
}

// carriedOut reports whether a server may have carried out a write. This includes a write that got
// no answer, or an error of the server.
func carriedOut(status int) bool {
	return status == 0 || succeeded(status) || status >= http.StatusInternalServerError
}

// until is the time in which a request can have caused a change of an object. It begins when the
// object was made. It ends a little after the change was seen, because a change is seen a little
// later than it happens.
func (o *object) until(change history.Object) window {
	return window{later(o.first().At, -settle), later(change.At, settle)}
}

// loadDeleted reports whether the load may have caused a change that began the deletion of an
// object.
func (f *Facts) loadDeleted(o *object, change history.Object) bool {
	w := o.until(change)
	asked := func(r *observation) bool {
		return w.overlaps(r.window) && f.deletes(r.op.Verb, r.op.Subresource, r.op.GVR, r.op.Namespace, r.op.Name, change)
	}
	return slices.ContainsFunc(f.removals[change.Name], asked) || slices.ContainsFunc(f.removals[""], asked)
}

// removes reports whether the operation may have deleted something.
func (o *observation) removes() bool {
	verb := o.op.Verb == "delete" || o.op.Verb == "deletecollection" || o.op.Verb == "create" && o.op.Subresource == "eviction"
	return verb && carriedOut(o.op.Status) && !dryRun(o.op)
}

// deleters are the requests that may have caused a change that began the deletion of an object.
// They come from the records of the servers that got them from a client.
func (f *Facts) deleters(o *object, change history.Object) []*history.Request {
	var out []*history.Request
	w := o.until(change)
	for i := range f.requests {
		q := &f.requests[i]
		if q.Start >= w.to {
			break
		}
		if !q.Rerouted && w.overlaps(window{q.Start, q.End}) && carriedOut(q.Status) && !strings.Contains(q.Path, "dryRun=") &&
			f.deletes(q.Verb, q.Subresource, q.GVR, q.Namespace, q.Name, change) {
			out = append(out, q)
		}
	}
	return out
}

// answered turns a request of a controller into an observation. So a wrong answer to a controller
// is shown and signed like a wrong answer to the load.
func (f *Facts) answered(q *history.Request) *observation {
	op := &history.Operation{
		ID: q.ID, Start: q.Start, End: q.End, Received: &history.Received{Status: q.Status},
		Sent: &history.Sent{
			Client: q.Agent, User: q.User, Server: q.Server, Verb: q.Verb, GVR: q.GVR, Subresource: q.Subresource,
			Namespace: q.Namespace, Name: q.Name,
			Path: q.Path,
		},
	}
	o := &observation{op: op, asked: f.byName[q.Server], window: window{q.Start, q.End}, likewise: q.Start, otherwise: q.Start}
	if q.GVR != (history.GVR{}) {
		o.resource = f.resource(key{q.GVR, q.Subresource})
	}
	o.situate(f.situate(o, o.window))
	if q.Status == http.StatusNotFound { // audit logs do not say what the 404 denies; a server denies no resource that it serves
		op.Missing = history.MissingResource
		if o.local == claimYes {
			op.Missing = history.MissingObject
		}
	}
	for _, same := range f.byID[q.ID] {
		o.hops = append(o.hops, history.Hop{Operation: same.ID, Start: same.Start, End: same.End,
			Entry: &history.Entry{Server: same.Server, Status: same.Status, User: same.User, Rerouted: same.Rerouted}})
	}
	slices.SortFunc(o.hops, func(a, b history.Hop) int { return hopOrder(q.Server, a, b) })
	return o
}

// sender names for people the program or user that sent a request.
func sender(q *history.Request) string {
	program, _, _ := strings.Cut(q.Agent, " ")
	if program == "" {
		return q.User
	}
	return q.User + " (" + program + ")"
}

// harm is a wrong act of a controller on an object, or work that a controller did not do. act is
// the request for it. misled is the wrong answer that misled the controller. Either is nil if the
// history has none. unseen is the resource of an object that the controller should have seen but
// did not see.
type harm struct {
	wrong, cause string
	at           history.Time
	object       history.Object
	unseen       history.GVR
	act          *history.Request
	misled       *wrongAnswer
	graph        []history.Object // owners first
	sentence     string
}

// harmed counts a violation by a controller. Its signature is that of the answer that misled the
// controller, because that answer went wrong first. A discovery document is no answer about the
// resource that it lacks: then, and if no server's log has such an answer, the signature has no
// answer, and names the role of the server through which the controller saw the cluster.
func (t *tally) harmed(h harm) {
	f := t.facts
	b := breach{Signature: Signature{Mechanism: MechanismController, Wrong: h.wrong}, at: h.at, cause: h.cause,
		about: h.object.APIVersion + " " + h.object.Kind}
	denied := h.misled != nil && !h.misled.document
	var misled *observation
	if h.misled != nil {
		misled = f.answered(h.misled.request)
	}
	switch {
	case denied:
		b = t.breach(misled, *misled.situation, h.wrong, h.cause)
		b.at, b.about = h.at, h.object.APIVersion+" "+h.object.Kind
	case h.misled != nil:
		b.asked = h.misled.request.Server
		b.Signature = f.blind(h.misled.request, h.misled.about, h.wrong)
		b.Signature.Mechanism = h.misled.mechanism
	case h.act != nil:
		b.asked = h.act.Server
		b.Signature = f.blind(h.act, h.unseen, h.wrong)
	}
	t.violation(b, func() Evidence {
		var e Evidence
		switch {
		case denied:
			e = f.show(misled, *misled.situation, answer(misled.op))
			h.sentence += " Before that, " + e.Sentence
		case h.misled != nil:
			unseen := f.blinded(h.misled.request, h.misled.about)
			e = Evidence{Operations: []history.Operation{*misled.op}, Hops: misled.hops, Candidates: f.candidates(unseen, *unseen.situation)}
			h.sentence += " " + h.misled.sentence()
		}
		if h.misled != nil {
			e.Misled = h.misled.shown()
		}
		e.Sentence, e.GVR, e.Subresource, e.Objects = h.sentence, f.gvrOf(h.object), "", h.graph
		if h.act != nil {
			act := f.answered(h.act)
			e.Operations, e.Hops = append(e.Operations, *act.op), slices.Concat(e.Hops, act.hops)
		}
		return e
	})
}

// blind is the signature of an act of a controller that saw no object of a resource. It describes
// the circumstances under which the server of that controller may not have known that other servers
// serve the resource.
func (f *Facts) blind(act *history.Request, gvr history.GVR, wrong string) Signature {
	o := f.blinded(act, gvr)
	s := f.signature(o, *o.situation, wrong)
	s.Mechanism, s.Answer, s.Way, s.Target = MechanismController, "", "", ""
	return s
}

// blinded is the observation of a request as if it had been about another resource.
func (f *Facts) blinded(act *history.Request, gvr history.GVR) *observation {
	about := *act
	about.GVR, about.Subresource = gvr, ""
	return f.answered(&about)
}

// deletedBy says for people who asked for the deletion, and through which server.
func deletedBy(act *history.Request) string {
	if act == nil {
		return "No server's log says who asked for it."
	}
	return fmt.Sprintf("%s asked for it through %s at %s: %s %s, answered %d.", sender(act), act.Server, clock(act.Start),
		act.Verb, act.Path, act.Status)
}
