package invariant

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// informer is an informer of the run with its deliveries, in order.
type informer struct {
	name, server string // server is empty for the load balancer
	gvr          history.GVR
	deliveries   []history.Delivery
}

// indexInformers sorts the deliveries by informer.
func (f *Facts) indexInformers(h *history.History) {
	byName := map[string]*informer{}
	for _, d := range slices.SortedFunc(slices.Values(h.Deliveries), deliveryOrder) {
		i := byName[d.Informer]
		if i == nil {
			i = &informer{name: d.Informer, server: d.Server, gvr: d.GVR}
			byName[d.Informer] = i
			f.informers = append(f.informers, i)
		}
		i.deliveries = append(i.deliveries, d)
	}
}

func deliveryOrder(a, b history.Delivery) int {
	return cmp.Or(strings.Compare(a.Informer, b.Informer), cmp.Compare(a.Index, b.Index), cmp.Compare(a.At, b.At), cmp.Compare(a.Kind, b.Kind),
		strings.Compare(a.ResourceVersion, b.ResourceVersion), strings.Compare(a.Server, b.Server),
		strings.Compare(a.GVR.String(), b.GVR.String()),
		strings.Compare(fmt.Sprint(a.Objects), fmt.Sprint(b.Objects)))
}

// isEvent reports whether a delivery is an event about an object.
func isEvent(d *history.Delivery) bool {
	return len(d.Objects) == 1 && (d.Kind == history.DeliveryAdded || d.Kind == history.DeliveryModified || d.Kind == history.DeliveryDeleted)
}

// revisionOf reads a resource version as an etcd revision. The two are the same for every object in
// etcd (k8s.io/apiserver, pkg/storage, APIObjectVersioner).
func revisionOf(resourceVersion string) (int64, bool) {
	n, err := strconv.ParseInt(resourceVersion, 10, 64)
	return n, err == nil && n > 0
}

// asks treats all requests of an informer in w as one request.
func (f *Facts) asks(i *informer, w window) *observation {
	return &observation{
		op: &history.Operation{Start: w.from, End: w.to,
			Sent:     &history.Sent{Server: i.server, Verb: "watch", GVR: i.gvr},
			Received: &history.Received{}},
		asked: f.byName[i.server], window: w, likewise: w.from, otherwise: w.from, situation: &situation{},
		resource: f.resource(key{GVR: i.gvr}),
	}
}

// informing is the situation of an informer of a server in w. It is zero for an informer of the
// load balancer.
func (f *Facts) informing(i *informer, w window) situation {
	if f.byName[i.server] == nil {
		return situation{}
	}
	return f.situate(f.asks(i, w), w)
}

// informerSignature is the signature of a wrong delivery to an informer at a time. late means that
// a delivery did not come in time. If the server then answered every request of the informer alike,
// that answer is a part of the signature, and the circumstances are those in which it began.
func (f *Facts) informerSignature(i *informer, at history.Time, wrong string, late bool) Signature {
	plain := Signature{Mechanism: MechanismInformer, Wrong: wrong}
	if f.byName[i.server] == nil {
		return plain
	}
	o := f.asks(i, window{at, at})
	o.situate(f.situate(o, o.window))
	if late {
		o.op.Status, o.likewise = i.refusedSince(at)
		o.otherwise = o.likewise
	}
	if o.op.Status == http.StatusNotFound && o.local != claimYes { // as in answered
		o.op.Missing = history.MissingResource
	}
	s := f.signature(o, *o.situation, wrong)
	s.Mechanism, s.Way, s.Target = MechanismInformer, "", ""
	if o.op.Status == 0 {
		s.Answer = ""
	}
	return s
}

// refusedSince returns the status of the informer's last response before a time, and when the
// informer was first answered like that without an interruption. If the last delivery was not a
// failure with a status, it returns 0 and at.
func (i *informer) refusedSince(at history.Time) (status int, since history.Time) {
	since = at
	for _, d := range slices.Backward(i.deliveries) {
		switch {
		case d.At > at:
			continue
		case d.Kind != history.DeliveryFailed || d.Status == 0 || status != 0 && d.Status != status:
			return status, since
		}
		status, since = d.Status, d.At
	}
	return status, since
}

// canInform reports whether, throughout w, an informer's address led to a server that serves the
// resource, or that can pass requests on to a server that serves it. The address of the load
// balancer leads to every server that is not down. canInform is false if no server serves the
// resource, if there is an obstacle, or if the history does not say.
func (f *Facts) canInform(i *informer, w window) bool {
	if i.server != "" {
		s := f.byName[i.server]
		return s != nil && f.serverInforms(s, i, w)
	}
	ready := slices.DeleteFunc(slices.Clone(f.servers), func(s *server) bool {
		span, whole := s.line.during(w)
		return whole && span.phase == phaseDown
	})
	return len(ready) > 0 && !slices.ContainsFunc(ready, func(s *server) bool { return !f.serverInforms(s, i, w) })
}

func (f *Facts) serverInforms(s *server, i *informer, w window) bool {
	o := f.asks(&informer{server: s.name, gvr: i.gvr}, w)
	is := f.situate(o, w)
	door, _ := f.reach(client, s.name, w)
	store, _ := f.reach(s.name, etcd, w)
	switch {
	case !is.ready || door != reachOpen || store != reachOpen:
		return false
	case is.local == claimYes:
		return true
	case is.local != claimNo || f.proxyOff(s.name, w):
		return false
	}
	return slices.ContainsFunc(is.capable, func(p peer) bool {
		way, _ := f.reach(s.name, p.server.name, w)
		back, _ := f.reach(p.server.name, etcd, w)
		return way == reachOpen && back == reachOpen && !f.proxyOff(p.server.name, w)
	})
}
