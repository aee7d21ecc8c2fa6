package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Part is a part of a run. The part includes From and does not include To.
type Part struct {
	From, To Time
	// Error says why the part was not completely carried out. It is empty if it was.
	Error string
}

// Slice returns the history of a part of a run, as if only that part had been recorded. Its
// verdicts are the same as those of such a recording.
//
// Times count from the beginning of the part. A server that is ready at this time is ready at time
// 0, in its incarnation 1, and serves at time 0 what it served then. Operations that began before
// the part or end after it are left out: a run of the part alone would not have sent the former,
// and would have cancelled the latter. If something such as a fault began before the part and lasts
// into it, its start time is negative.
//
// The slice of a whole run is the same history, except that unused documents are left out. Slice
// does not change h, and shares memory with it.
func Slice(h *History, p Part) (*History, error) {
	limit := p.To
	if h.End.Complete && h.End.At <= p.To {
		p.To, p.Error = h.End.At, cmp.Or(h.End.Error, p.Error)
		limit = Forever // records from the very end belong to the last part
	}
	if p.From < 0 || p.To < p.From {
		return nil, fmt.Errorf("cut a history from %s to %s: the end is before the beginning", p.From, p.To)
	}
	s := &slicer{Part: p, limit: limit, out: &History{Run: h.Run, Documents: map[string]Document{}}, before: map[string]int{},
		now: map[string]int{}}
	s.out.Run.Servers = slices.Clone(h.Run.Servers)
	if !s.out.Run.StartedAt.IsZero() {
		s.out.Run.StartedAt = s.out.Run.StartedAt.Add(p.From)
	}
	s.lifecycle(h)
	s.served(h)
	s.configured(h)
	s.asked(h)
	s.done(h)
	s.existing(h)
	s.document(h)
	s.out.End = End{At: p.To - p.From, Error: p.Error, Complete: true}
	s.out.Sort()
	return s.out, nil
}

// slicer is one call of [Slice].
type slicer struct {
	Part
	limit Time // the first time after the part
	out   *History
	// before is the number of incarnations of a server that do not count, because they ended before
	// the part.
	before map[string]int
	// now is the incarnation of a server that runs at the beginning of the part; 0 if the server
	// does not run.
	now map[string]int
}

// within reports whether a time is in the part.
func (s *slicer) within(t Time) bool { return s.From <= t && t < s.limit }

// overlaps reports whether a period overlaps the part.
func (s *slicer) overlaps(start, end Time) bool { return start < s.limit && end >= s.From }

// at shifts a time. Forever stays unchanged.
func (s *slicer) at(t Time) Time {
	if t == Forever {
		return t
	}
	return t - s.From
}

// ends shifts the end of something. The result is not later than the end of the part.
func (s *slicer) ends(t Time) Time {
	if t == Forever {
		return t
	}
	return s.at(min(t, s.To)) // no record lasts longer than the run
}

// incarnation renumbers an incarnation. ok is false if it ended before the part.
func (s *slicer) incarnation(server string, n int) (renumbered int, ok bool) {
	n -= s.before[server]
	return n, n > 0
}

// during renumbers the incarnation and shifts the time of something that a process did or was. ok
// is false if this was not in the part.
func (s *slicer) during(server string, n int, t Time) (renumbered int, at Time, ok bool) {
	n, ok = s.incarnation(server, n)
	return n, s.at(t), ok && s.within(t)
}

// stages are the states through which a process reached its present state, as far as they still
// matter.
var stages = map[State][]State{
	StateStarting: {StateStarting},
	StateReady:    {StateStarting, StateReady},
	StatePaused:   {StateStarting, StateReady, StatePaused},
	StateResumed:  {StateStarting, StateReady},
	StateStopping: {StateStarting, StateReady, StateStopping},
	StateDrained:  {StateStarting, StateReady, StateStopping},
}

// lifecycle renumbers the incarnations. A process that runs at the beginning is started at time 0.
func (s *slicer) lifecycle(h *History) {
	last := map[string]Lifecycle{}  // of each server, before the part
	ready := map[string]Lifecycle{} // its last record of being ready
	for _, l := range h.Lifecycle {
		if l.At >= s.From || l.Incarnation < last[l.Server].Incarnation {
			continue
		}
		last[l.Server] = l
		if l.State == StateReady {
			ready[l.Server] = l
		}
	}
	for i := range s.out.Run.Servers {
		server := &s.out.Run.Servers[i]
		was, ok := last[server.Name]
		if !ok {
			continue
		}
		through := stages[was.State]
		s.before[server.Name] = was.Incarnation
		if len(through) == 0 {
			continue // it has ended
		}
		s.before[server.Name]--
		s.now[server.Name] = was.Incarnation
		if server.Version != was.Version {
			server.Version, server.Args = was.Version, nil // those of its first start
		}
		if r := ready[server.Name]; r.Incarnation == was.Incarnation {
			was.Version, was.Emulates, was.Reports = r.Version, r.Emulates, r.Reports
		}
		was.Incarnation, was.At, was.Detail = 1, 0, ""
		for _, state := range through {
			was.State = state
			s.out.Lifecycle = append(s.out.Lifecycle, was)
		}
	}
	for _, l := range h.Lifecycle {
		var ok bool
		if l.Incarnation, l.At, ok = s.during(l.Server, l.Incarnation, l.At); ok {
			s.out.Lifecycle = append(s.out.Lifecycle, l)
		}
	}
}

// served keeps what each server served at the beginning, and the changes. If the last confirmation
// of a document is before the part, the change happened at an unknown time between the beginning of
// the part and the time when it was seen.
func (s *slicer) served(h *History) {
	first := map[string]Served{}
	for _, v := range h.Served {
		if v.At < s.From && v.Incarnation == s.now[v.Server] {
			v.Incarnation, v.At, v.Confirmed = 1, 0, 0
			first[v.Server] = v
		}
	}
	for _, server := range s.out.Run.Servers {
		if v, ok := first[server.Name]; ok {
			s.out.Served = append(s.out.Served, v)
		}
	}
	for _, v := range h.Served {
		n, ok := s.incarnation(v.Server, v.Incarnation)
		if !ok || !s.within(v.At) {
			continue
		}
		v.Incarnation, v.At = n, s.at(v.At)
		if v.Confirmed > 0 {
			v.Confirmed = min(max(s.at(v.Confirmed), time.Nanosecond), v.At)
		}
		s.out.Served = append(s.out.Served, v)
	}
}

// configured keeps the flags of the processes, their effects, and the contents of their leases.
func (s *slicer) configured(h *History) {
	for _, c := range h.Configurations {
		n, ok := s.incarnation(c.Server, c.Incarnation)
		if !ok || c.At >= s.limit {
			continue
		}
		c.Incarnation, c.At = n, max(0, s.at(c.At))
		s.out.Configurations = append(s.out.Configurations, c)
	}
	for _, e := range h.Effects {
		var ok bool
		if e.Incarnation, e.At, ok = s.during(e.Server, e.Incarnation, e.At); ok {
			s.out.Effects = append(s.out.Effects, e)
		}
	}
	for _, l := range h.Leases {
		n, ok := s.incarnation(l.Server, l.Incarnation)
		if !ok || !s.overlaps(l.First, l.Last) {
			continue
		}
		l.Incarnation, l.First, l.Last = n, max(0, s.at(l.First)), s.ends(l.Last)
		s.out.Leases = append(s.out.Leases, l)
	}
	for _, c := range h.Counted {
		var ok bool
		if c.Incarnation, c.At, ok = s.during(c.Server, c.Incarnation, c.At); ok {
			s.out.Counted = append(s.out.Counted, c)
		}
	}
	for _, c := range h.Crowds {
		if s.overlaps(c.Start, c.End) {
			c.Start, c.End = max(0, s.at(c.Start)), s.ends(c.End)
			s.out.Crowds = append(s.out.Crowds, c)
		}
	}
}

// asked keeps the operations with the servers' records of them, and the requests of other clients.
func (s *slicer) asked(h *History) {
	kept := map[string]bool{}
	for _, o := range h.Operations {
		if !s.within(o.Start) || o.End > s.To {
			continue
		}
		kept[o.ID] = true
		o.Start, o.End = s.at(o.Start), s.at(o.End)
		s.out.Operations = append(s.out.Operations, o)
	}
	for _, hop := range h.Hops {
		if kept[hop.Operation] {
			hop.Start, hop.End = s.at(hop.Start), s.at(hop.End)
			s.out.Hops = append(s.out.Hops, hop)
		}
	}
	for _, q := range h.Requests {
		if s.within(q.Start) {
			q.Start, q.End = s.at(q.Start), s.ends(q.End)
			s.out.Requests = append(s.out.Requests, q)
		}
	}
	for _, w := range h.Written { // it has the time of its request
		if slices.ContainsFunc(s.out.Requests, func(q Request) bool { return q.ID == w.ID }) {
			s.out.Written = append(s.out.Written, w)
		}
	}
}

// done keeps the steps, the faults, and the times at which the machine was slow.
func (s *slicer) done(h *History) {
	for _, step := range h.Steps {
		if s.within(step.Start) {
			step.Start, step.End = s.at(step.Start), s.ends(step.End)
			s.out.Steps = append(s.out.Steps, step)
		}
	}
	for _, f := range h.Faults {
		if s.overlaps(f.Start, f.End) {
			f.Start, f.End = s.at(f.Start), s.ends(f.End)
			s.out.Faults = append(s.out.Faults, f)
		}
	}
	for _, p := range h.SlowProbes {
		if s.overlaps(p.Start, p.End) {
			p.Start, p.End = s.at(p.Start), s.ends(p.End)
			s.out.SlowProbes = append(s.out.SlowProbes, p)
		}
	}
}

// existing keeps the objects that exist at the beginning and their changes, and the informers that
// were started in the part. It leaves out informers that ran before, because they would have had
// other objects.
func (s *slicer) existing(h *History) {
	exists := map[string]Object{} // at the beginning
	for _, o := range h.Objects { // in the order of revisions
		switch {
		case o.At >= s.limit:
		case o.At >= s.From:
			o.At = s.at(o.At)
			s.out.Objects = append(s.out.Objects, o)
		case o.Gone:
			delete(exists, o.Key)
		default:
			o.At = 0
			exists[o.Key] = o
		}
	}
	for _, o := range exists { // the order does not matter, because they are then sorted by revision and key
		s.out.Objects = append(s.out.Objects, o)
	}
	slices.SortStableFunc(s.out.Objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), strings.Compare(a.Key, b.Key))
	})
	started := map[string]bool{}
	for _, d := range h.Deliveries {
		if !s.within(d.At) {
			continue
		}
		if started[d.Informer] = started[d.Informer] || d.Kind == DeliveryStarted; started[d.Informer] {
			d.At = s.at(d.At)
			s.out.Deliveries = append(s.out.Deliveries, d)
		}
	}
}

// document keeps the documents that are used.
func (s *slicer) document(h *History) {
	keep := func(hash string) {
		if d, ok := h.Documents[hash]; ok {
			s.out.Documents[hash] = d
		}
	}
	for _, v := range s.out.Served {
		keep(v.Document)
	}
	for _, o := range s.out.Operations {
		keep(o.Document)
	}
}
