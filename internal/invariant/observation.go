package invariant

import (
	"cmp"
	"iter"
	"net/http"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// observation is one operation together with the state of the cluster while it was under way.
type observation struct {
	op       *history.Operation
	asked    *server
	resource *resource // nil if the operation is not about anything that discovery can list
	window   window
	hops     []history.Hop // the servers' own records of the operation
	shared   bool          // other operations have the same ID, so the hops are unknown
	// likewise is the time since when the asked server has given the same answer to every such
	// request. This means 404 to requests for resources of the same servers, or the same discovery
	// document. It is the start of the operation if the operation is the first.
	likewise history.Time
	// otherwise is when the asked server last gave such a request another answer, or the beginning.
	// In a history with few requests this is long before likewise.
	otherwise history.Time
	// situation is shared by the observations of which it is true. It is never changed.
	*situation
}

// situate sets the situation of an observation.
func (o *observation) situate(s situation) { o.situation = &s }

// situation is the state of the cluster over one window, as far as it matters to one asked server.
type situation struct {
	// ready is true if the asked server was ready, and not paused, all the time. readySince is the
	// start of that time.
	ready      bool
	readySince history.Time
	local      claim // of the asked server itself
	localSince history.Time
	capable    []peer    // other servers that served the resource all the time
	unsure     []*server // other servers that may have served it
	lost       []string  // servers that served it until they were killed or crashed
}

// peer is a server that serves a resource.
type peer struct {
	server *server
	since  history.Time
}

// indexOperations sorts the operations by time and finds the situation of each.
func (f *Facts) indexOperations(h *history.History) {
	f.observations = make([]*observation, 0, len(h.Operations))
	all := make([]observation, len(h.Operations)) // one piece of memory
	last := situations{}
	for i := range h.Operations {
		op := &h.Operations[i]
		if why := f.cannotBe(op); why != "" {
			f.impossible.found("operation %s: %s", op.ID, why)
			f.impossible.operations = append(f.impossible.operations, op)
			continue
		}
		o := &all[i]
		*o = observation{op: op, asked: f.byName[op.Server], window: window{op.Start, op.End}}
		if op.GVR != (history.GVR{}) || op.Verb == history.VerbDiscovery {
			o.resource = f.resource(key{op.GVR, op.Subresource})
		}
		o.situation = last.share(o, f.situate(o, o.window))
		f.observations = append(f.observations, o)
		if o.removes() {
			f.removals[op.Name] = append(f.removals[op.Name], o)
		}
		f.finish = max(f.finish, op.End)
		if op.Failure != history.FailureCanceled {
			f.traffic = max(f.traffic, op.End)
		}
	}
	f.finish = max(f.finish, f.end.At)
	slices.SortStableFunc(f.observations, func(a, b *observation) int { return operationOrder(a.op, b.op) })
	f.indexLikewise()
}

// indexLikewise sets observation.likewise. A server may still give a wrong answer long after the
// cause is over.
func (f *Facts) indexLikewise() {
	type kind struct {
		asked, what string
		part        bool // a subresource
	}
	type answer struct {
		text  string
		since history.Time // as in observation
		other history.Time // likewise
		ended history.Time // the last response
	}
	last := map[kind]answer{}
	for _, o := range f.observations {
		o.likewise, o.otherwise = o.op.Start, o.op.Start
		k, text := kind{asked: o.op.Server}, ""
		switch {
		case o.op.Document != "":
			k.what, text = o.op.Verb+" "+o.op.Path, o.op.Document
		case o.skewed() && routed(o.op):
			for _, p := range o.capable {
				k.what += p.server.name + " "
			}
			k.part = o.op.Subresource != ""
			if resourceNotFound(o.op) {
				text = "404"
			}
		default:
			continue
		}
		before, asked := last[k]
		switch {
		case !asked:
			o.otherwise = beginning
		case before.text == text:
			o.likewise, o.otherwise = before.since, before.other
		default:
			o.otherwise = min(before.ended, o.op.Start)
		}
		last[k] = answer{text, o.likewise, o.otherwise, o.op.End}
	}
}

func operationOrder(a, b *history.Operation) int {
	if c := cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID)); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Server, b.Server),
		cmp.Compare(a.Path, b.Path), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Document, b.Document),
		cmp.Compare(a.ETag, b.ETag), cmp.Compare(a.Missing, b.Missing), cmp.Compare(a.Failure, b.Failure),
		cmp.Compare(a.GVR.String(), b.GVR.String()), cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.Purpose, b.Purpose))
}

func (f *Facts) resource(k key) *resource {
	r := f.resources[k]
	if r == nil {
		r = f.newResource(k)
		f.resources[k] = r
	}
	return r
}

// situate finds the situation of o over w, which may be shorter than the operation.
func (f *Facts) situate(o *observation, w window) situation {
	var s situation
	span, whole := o.asked.line.during(w)
	s.ready = whole && span.phase == phaseReady
	s.readySince = span.from
	if o.resource == nil {
		return s
	}
	for _, srv := range f.servers {
		c := o.resource.during(srv, w)
		hidden, since := f.unannounced(srv.name, w)
		switch {
		case srv == o.asked:
			s.local, s.localSince = c.claim, c.from
		case c.claim == claimYes && hidden:
			s.unsure = append(s.unsure, srv)
		case c.claim == claimYes:
			s.capable = append(s.capable, peer{srv, max(c.from, since)})
		case c.claim == claimUnknown:
			s.unsure = append(s.unsure, srv)
		case c.lost == history.StateKilled || c.lost == history.StateCrashed:
			s.lost = append(s.lost, srv.name)
		}
	}
	return s
}

// situations are the last situations of each kind of operation.
type situations map[asked]*situation

// asked is all of an operation on which its situation depends, except the time.
type asked struct {
	server   *server
	resource *resource
}

// share returns a situation that equals s. It is that of the last operation of the kind, if the two
// are equal, as most are.
func (all situations) share(o *observation, s situation) *situation {
	of := asked{o.asked, o.resource}
	if last := all[of]; last == nil || !last.equal(&s) {
		all[of] = &s
	}
	return all[of]
}

func (s *situation) equal(o *situation) bool {
	return s.ready == o.ready && s.readySince == o.readySince && s.local == o.local && s.localSince == o.localSince &&
		slices.Equal(s.capable, o.capable) && slices.Equal(s.unsure, o.unsure) && slices.Equal(s.lost, o.lost)
}

// skewed reports whether only other servers served the resource.
func (s *situation) skewed() bool { return s.ready && s.local == claimNo && len(s.capable) > 0 }

// unread reports whether the history says nothing about what the asked server served itself. Then
// it is unknown which part of the proxy the request tests, so findings cannot be told apart.
func (o *observation) unread() bool {
	s := o.asked.servedAt(o.window.from)
	return o.local == claimUnknown && s.phase == phaseReady && s.doc == nil && !s.changing()
}

// unserved reports whether it is certain that no server served the resource.
func (s *situation) unserved() bool {
	return s.ready && s.local == claimNo && len(s.capable) == 0 && len(s.unsure) == 0
}

// routed reports whether the response says anything about routing. Authentication, authorization
// and flow control reject a request before routing.
func routed(op *history.Operation) bool {
	switch op.Status {
	case 0, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return false
	}
	return op.Failure != history.FailureCanceled
}

// localDocument reports whether the operation asks for the discovery document of a group or version
// while the asked server may serve nothing of it. KEP-4020 (Summary, note 2) leaves these documents
// to each server. But a server must have the documents of the resources that it serves itself.
func (o *observation) localDocument() bool {
	return o.resource != nil && o.resource.describes() && o.local != claimYes
}

// resourceNotFound reports whether the response denies that the resource, group or version exists.
// A 404 about an object is not such a response.
func resourceNotFound(op *history.Operation) bool {
	return op.Status == http.StatusNotFound && (op.Missing == history.MissingResource || op.Verb == history.VerbDiscovery)
}

// truncated404 reports whether the response is a 404 with a truncated body. Then it is unknown
// whether the 404 denies the resource or an object.
func truncated404(op *history.Operation) bool {
	return op.Status == http.StatusNotFound && op.Missing == history.MissingNothing &&
		op.Failure != history.FailureNone && op.Verb != history.VerbDiscovery
}

// cutOff reports whether the asked server could reach no capable server at any time in w.
func (f *Facts) cutOff(o *observation, s situation, w window) bool {
	for _, p := range s.capable {
		if r, _ := f.reach(o.op.Server, p.server.name, w); r != reachClosed {
			return false
		}
	}
	return len(s.capable) > 0
}

// hasEtcd reports whether the asked server's link to etcd worked throughout w. Without etcd a
// server cannot verify tokens, cannot authorize by objects that it has not read yet, cannot serve,
// and cannot find its peers.
func (f *Facts) hasEtcd(o *observation, w window) bool {
	r, _ := f.reach(o.op.Server, etcd, w)
	return r == reachOpen
}

// untilBound is the window of the operation, cut to at most Bounds.Unavailable.
func (f *Facts) untilBound(o *observation) window {
	return window{o.window.from, min(o.window.to, later(o.window.from, f.bounds.Unavailable))}
}

// Class says which servers could have served a request, according to their own nopeer documents.
type Class string

// The classes of requests.
const (
	ClassServedHere Class = "servedHere" // the asked server serves the resource itself
	ClassSkewed     Class = "skewed"     // only other live servers do: a case for the Mixed Version Proxy
	ClassUnserved   Class = "unserved"   // no live server does
	ClassDiscovery  Class = "discovery"  // not about a resource: discovery, health
	ClassDown       Class = "down"       // the asked server was not running
	ClassUnknown    Class = "unknown"    // the served resources changed meanwhile or are unknown
)

// Handled says who could have served a request, what it tests, and who handled it.
type Handled struct {
	Class Class
	Way   Way
	// Mechanism is the part of the proxy that the request tests, whatever the answer is.
	Mechanism Mechanism
	// Hops are the servers' own records of the request, in time order.
	Hops []history.Hop
}

// Handled yields every operation of the history with the facts about its handling, in time order.
// Callers must not change the operations or their hops.
func (f *Facts) Handled() iter.Seq2[*history.Operation, Handled] {
	return func(yield func(*history.Operation, Handled) bool) {
		for _, o := range f.observations {
			if !yield(o.op, Handled{o.class(), o.way(), f.requested(o), o.hops}) {
				return
			}
		}
	}
}

// way says who handled the request, by the servers' own logs.
func (o *observation) way() Way {
	switch {
	case o.forwarded():
		return WayPassedOn
	case len(o.hops) > 0:
		return WayAnswered
	}
	return WayUnknown
}

func (o *observation) class() Class {
	span, whole := o.asked.line.during(o.window)
	switch {
	case whole && span.phase == phaseDown:
		return ClassDown
	case o.op.Verb == history.VerbDiscovery, o.op.GVR.Resource == "":
		return ClassDiscovery
	case o.local == claimYes:
		return ClassServedHere
	case o.local == claimNo && len(o.capable) > 0:
		return ClassSkewed
	case o.local == claimNo && len(o.unsure) == 0:
		return ClassUnserved
	default:
		return ClassUnknown
	}
}
