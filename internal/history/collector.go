package history

import (
	"io"
	"slices"
)

// Collector is a [Recorder] that keeps its records in memory. It is for a run of which parts are
// used before it ends ([Slice]).
type Collector struct{ *Recorder }

// NewCollector starts a history in memory. now is as in [NewRecorder].
func NewCollector(run Run, now func() Time) Collector {
	r := NewRecorder(io.Discard, Run{}, now)
	run.Schema = SchemaVersion
	r.kept = &History{Run: run, Documents: map[string]Document{}}
	return Collector{r}
}

// Part returns a part of the records so far; see [Slice].
func (c Collector) Part(p Part) (*History, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.Sort()
	return Slice(c.kept, p)
}

// Forget drops the records that do not matter to a part that begins at from or later, so that a
// long run does not fill the memory. Forget also restarts the counts of [Recorder.Asked],
// [Recorder.Sent] and [Recorder.UnderWay].
func (c Collector) Forget(from Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.kept
	k.Operations = slices.DeleteFunc(k.Operations, func(o Operation) bool { return o.Start < from })
	k.Hops = slices.DeleteFunc(k.Hops, func(h Hop) bool { return h.Start < from })
	k.Requests = slices.DeleteFunc(k.Requests, func(q Request) bool { return q.Start < from })
	k.Written = slices.DeleteFunc(k.Written, func(w Written) bool {
		return !slices.ContainsFunc(k.Requests, func(q Request) bool { return q.ID == w.ID })
	})
	k.Steps = slices.DeleteFunc(k.Steps, func(s Step) bool { return s.Start < from })
	k.Faults = slices.DeleteFunc(k.Faults, func(f Fault) bool { return f.End < from })
	k.SlowProbes = slices.DeleteFunc(k.SlowProbes, func(p SlowProbe) bool { return p.End < from })
	k.Crowds = slices.DeleteFunc(k.Crowds, func(c Crowd) bool { return c.End < from })
	k.Counted = slices.DeleteFunc(k.Counted, func(c Counted) bool { return c.At < from })
	k.Leases = slices.DeleteFunc(k.Leases, func(l Lease) bool { return l.Last < from })
	k.Effects = slices.DeleteFunc(k.Effects, func(e Effect) bool { return e.At < from })
	clear(c.asked)
	clear(c.sent)
}

// ForgetObjects drops the records of objects. It is for the time between two watches of etcd: the
// next watch records all objects that exist when it begins, and nobody records what happens to the
// others in between.
func (c Collector) ForgetObjects() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.Objects = nil
}
