package invariant

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// observation is one operation together with what was true of the cluster while it lasted.
type observation struct {
	op       *history.Operation
	asked    *server
	resource *resource // nil when the operation was not about anything that discovery can list
	window   window
	situation
}

// situation is what was true over one window, seen from one asked server.
type situation struct {
	// ready is true when the asked server was ready, and not paused, all the time; readySince is since when.
	ready      bool
	readySince history.Time
	local      claim // of the asked server itself
	localSince history.Time
	capable    []peer    // other servers that served it all the time
	unsure     []*server // other servers of which that cannot be said, nor its contrary
	lost       []string  // servers that served it until they were killed or crashed
}

// peer is a server that serves a resource.
type peer struct {
	server *server
	since  history.Time
}

// indexOperations sorts the operations by time and looks up the situation of each.
func (f *Facts) indexOperations(h *history.History) {
	f.observations = make([]*observation, 0, len(h.Operations))
	for i := range h.Operations {
		op := &h.Operations[i]
		o := &observation{op: op, asked: f.byName[op.Server], window: window{op.Start, op.End}}
		if k, about := subject(op); about {
			o.resource = f.resource(k)
		}
		o.situation = f.situate(o, o.window)
		f.observations = append(f.observations, o)
		f.finish = max(f.finish, op.End)
		if op.Failure != history.FailureCanceled {
			f.traffic = max(f.traffic, op.End)
		}
	}
	f.finish = max(f.finish, f.end.At)
	slices.SortStableFunc(f.observations, func(a, b *observation) int { return operationOrder(a.op, b.op) })
	for _, o := range f.observations {
		if _, twice := f.byID[o.op.ID]; twice {
			f.byID[o.op.ID] = nil // whose the accounts of this ID are is not known
			continue
		}
		f.byID[o.op.ID] = o
	}
}

func operationOrder(a, b *history.Operation) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID), cmp.Compare(a.End, b.End), cmp.Compare(a.Server, b.Server),
		cmp.Compare(a.Path, b.Path), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Document, b.Document),
		cmp.Compare(a.ETag, b.ETag), cmp.Compare(a.Missing, b.Missing), cmp.Compare(a.Failure, b.Failure),
		cmp.Compare(a.GVR.String(), b.GVR.String()), cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.Purpose, b.Purpose))
}

// subject is what an operation is about. Discovery of a group or version is about that; merged discovery is about the
// zero key. Health checks and the like are about nothing.
func subject(op *history.Operation) (key, bool) {
	return key{op.GVR, op.Subresource}, op.GVR != history.GVR{} || op.Verb == history.VerbDiscovery
}

func (f *Facts) resource(k key) *resource {
	r := f.resources[k]
	if r == nil {
		r = newResource(k, f.servers)
		f.resources[k] = r
	}
	return r
}

// situate looks up what was true for o over w, which may be shorter than the operation.
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
		switch {
		case srv == o.asked:
			s.local, s.localSince = c.claim, c.from
		case c.claim == claimYes:
			s.capable = append(s.capable, peer{srv, c.from})
		case c.claim == claimUnknown:
			s.unsure = append(s.unsure, srv)
		case c.lost == history.StateKilled || c.lost == history.StateCrashed:
			s.lost = append(s.lost, srv.name)
		}
	}
	return s
}

// skewed reports whether the asked server had to pass the request on.
func (s *situation) skewed() bool { return s.ready && s.local == claimNo && len(s.capable) > 0 }

// unserved reports whether surely nobody served it.
func (s *situation) unserved() bool {
	return s.ready && s.local == claimNo && len(s.capable) == 0 && len(s.unsure) == 0
}

// routed reports whether the response says anything of where the request was, or could not be, routed to. What
// authentication, authorization and flow control refuse is refused before that.
func routed(op *history.Operation) bool {
	switch op.Status {
	case 0, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return false
	}
	return op.Failure != history.FailureCanceled
}

// leftLocal reports whether it is about the document of a group or version of which the asked server may serve nothing. KEP-4020 leaves these documents, by
// note 2 of its summary, to each server alone; of what a server serves itself it must have them all the same.
func (o *observation) leftLocal() bool {
	return o.resource != nil && o.resource.describes() && o.local != claimYes
}

// resourceNotFound reports whether the response denies that the resource (or group, or version) exists. A missing object
// is something else.
func resourceNotFound(op *history.Operation) bool {
	if op.Status != http.StatusNotFound {
		return false
	}
	return op.Missing == history.MissingResource || op.Verb == history.VerbDiscovery
}

// illegible reports whether the response is a 404 whose body broke off: whether it denied the resource or an object of it is not known.
func illegible(op *history.Operation) bool {
	return op.Status == http.StatusNotFound && op.Missing == history.MissingNothing && op.Failure != history.FailureNone && op.Verb != history.VerbDiscovery
}

// severed reports whether every capable server was out of the asked one's reach over all of w.
func (f *Facts) severed(o *observation, s situation, w window) bool {
	for _, p := range s.capable {
		if r, _ := f.reach(o.op.Server, p.server.name, w); r != reachClosed {
			return false
		}
	}
	return len(s.capable) > 0
}

// measurePressure counts what the operations put on the subject, as far as the ground truth tells.
func (f *Facts) measurePressure() {
	for _, o := range f.observations {
		if o.op.Status != 0 {
			f.pressure.Operations++
		}
		if o.resource == nil || o.leftLocal() || o.op.Failure == history.FailureCanceled {
			continue
		}
		if o.skewed() {
			f.pressure.Skewed++
			if f.severed(o, o.situation, f.patience(o)) {
				f.pressure.Unreachable++
			}
		}
		if o.unserved() {
			f.pressure.Unserved++
		}
	}
}

// patience is the part of an operation that decides whether it was refused in time: all of it, but at most the bound.
func (f *Facts) patience(o *observation) window {
	return window{o.window.from, min(o.window.to, later(o.window.from, f.bounds.Unavailable))}
}
