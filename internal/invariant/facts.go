package invariant

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/sim/recorded"
)

// Facts is the indexed history from which every invariant reasons. NewFacts builds it once. Facts
// does not change the history. It is not safe for concurrent use, because some indexes are filled
// when they are first needed.
//
// Anything that the history does not record is unknown. An operation that depends on something
// unknown is unjudgeable, because invariants do not guess.
type Facts struct {
	history      *history.History
	run          history.Run
	bounds       history.Bounds
	finish       history.Time // of the last event
	traffic      history.Time // end of the last operation that was not cancelled
	end          history.End
	observations []*observation
	steps        []history.Step
	unleased     []unleased // by the start
	withdrawn    []window   // in which servers could not read the discovery of their peers
	faultList    []history.Fault
	faults       map[link][]history.Fault
	reconnects   []history.Fault // see indexReconnects
	lifecycle    []history.Lifecycle
	setups       map[process]string // what was unusual about how a process was set up
	twins        bool               // some processes had one host name
	settings     map[process]*setting
	servers      []*server // by name
	byName       map[string]*server
	documents    map[string]*document
	resources    map[key]*resource
	disturbances []window // in which the run changed the cluster or injected a fault
	steady       []*steadyWindow
	objects      objects
	kinds        map[groupKind][]history.GVR   // the resources of a kind
	informers    []*informer                   // by name
	requests     []history.Request             // by time
	byID         map[string][]*history.Request // requests
	removals     map[string][]*observation     // operations that may have deleted an object, by its name
	exclusions   []exclusion                   // by the start, see indexExclusions
	builtIns     map[groupVersion]bool         // filled by builtInAnywhere
	crowds       []history.Crowd
	counted      []history.Counted // the last one of each process
	overloads    []window          // see indexOverload
	overload     history.Time      // total time in which the machine was overloaded
	pressure     history.Pressure  // the pressure that the servers were really under
	unions       map[string]map[element]bool
	comparisons  map[[2]*document]*comparison // filled by compared
	anyObstacles map[window]Obstacle          // filled by anyObstacle
	complete     map[completenessKey]completeness
	deciding     bool // see [Decide]
	impossible   impossible
	written      []history.Written
	fieldTables  map[pairOf]recorded.FieldTable // filled by drops
	nodeRights   map[string]*recorded.Behaviour // by version; filled by permitsNodes
}

// History returns the history whose facts these are.
func (f *Facts) History() *history.History { return f.history }

// process is one incarnation of a server.
type process struct {
	server      string
	incarnation int
}

// server is one apiserver with its timeline and what it served.
type server struct {
	name   string
	index  int // in Facts.servers
	line   timeline
	served []served
}

// NewFacts indexes h.
func NewFacts(h *history.History) *Facts {
	f := &Facts{
		history: h, run: h.Run, bounds: boundsOf(h.Run), end: h.End,
		faults: map[link][]history.Fault{}, byName: map[string]*server{}, documents: map[string]*document{}, resources: map[key]*resource{},
		setups: map[process]string{}, unions: map[string]map[element]bool{}, builtIns: map[groupVersion]bool{},
		complete: map[completenessKey]completeness{}, comparisons: map[[2]*document]*comparison{}, anyObstacles: map[window]Obstacle{},
		removals: map[string][]*observation{}, written: h.Written, fieldTables: map[pairOf]recorded.FieldTable{}, nodeRights: map[string]*recorded.Behaviour{},
	}
	for hash, d := range h.Documents {
		f.documents[hash] = newDocument(d)
	}
	for _, c := range h.Configurations {
		f.setups[process{c.Server, c.Incarnation}] = c.Setup
	}
	for _, e := range h.Effects {
		f.setups[process{e.Server, e.Incarnation}] = e.Setup
	}
	f.indexFaults(h)
	f.indexReconnects(h)
	f.indexServers(h)
	f.indexExclusions()
	f.indexOverload(h)
	f.indexOperations(h)
	f.indexHops(h)
	f.indexKinds()
	f.indexRequests(h)
	f.indexObjects(h)
	f.indexInformers(h)
	f.indexDisturbances()
	f.indexSettings(h)
	f.measurePressure()
	return f
}

// boundsOf fills in the bounds that a scenario leaves out, because no apiserver can keep a bound of
// zero.
func boundsOf(run history.Run) history.Bounds {
	b := run.Bounds
	b.Staleness = cmp.Or(max(b.Staleness, 0), history.DefaultBounds.Staleness)
	b.Unavailable = cmp.Or(max(b.Unavailable, 0), history.DefaultBounds.Unavailable)
	b.Convergence = cmp.Or(max(b.Convergence, 0), history.DefaultBounds.Convergence)
	b.Collection = cmp.Or(max(b.Collection, 0), history.DefaultBounds.Collection)
	return b
}

func (f *Facts) indexFaults(h *history.History) {
	f.faultList = slices.SortedFunc(slices.Values(h.Faults), faultOrder)
	for _, fault := range f.faultList {
		if fault.To != "" {
			l := link{fault.From, fault.To}
			f.faults[l] = append(f.faults[l], fault)
		}
	}
	f.crowds = h.Crowds
	f.indexCounted(h)
	f.steps = slices.SortedFunc(slices.Values(h.Steps), func(a, b history.Step) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Index, b.Index),
			cmp.Compare(a.Sentence, b.Sentence))
	})
	f.indexLeases()
}

// indexServers indexes every server that some record names, because the Run of a hand-made history
// may list no servers.
func (f *Facts) indexServers(h *history.History) {
	know := func(name string) {
		if f.byName[name] == nil {
			f.byName[name] = &server{name: name}
		}
	}
	for _, s := range h.Run.Servers {
		know(s.Name)
	}
	for _, s := range h.Run.Unnamed {
		know("unnamed server " + s)
	}
	for _, o := range h.Operations {
		know(o.Server)
	}
	for _, q := range h.Requests {
		know(q.Server)
	}
	f.lifecycle = f.possibleLives(slices.SortedFunc(slices.Values(h.Lifecycle), lifecycleOrder))
	f.unnoticedStops()
	lives := map[string][]history.Lifecycle{}
	for _, l := range f.lifecycle {
		know(l.Server)
		lives[l.Server] = append(lives[l.Server], l)
		f.finish = max(f.finish, l.At)
	}
	truths := map[string][]history.Served{}
	for _, s := range slices.SortedFunc(slices.Values(h.Served), func(a, b history.Served) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Incarnation, b.Incarnation), cmp.Compare(a.Document, b.Document))
	}) {
		truths[s.Server] = append(truths[s.Server], s)
	}
	f.servers = slices.SortedFunc(maps.Values(f.byName), func(a, b *server) int { return cmp.Compare(a.name, b.name) })
	for i, s := range f.servers {
		s.index = i
		s.line = newTimeline(lives[s.name])
		for _, w := range f.leaseExpiries(s.name, s.line) {
			s.line = s.line.without(w)
		}
		s.served = newServed(s.line, truths[s.name], f.documents)
	}
}

// unnoticedStops treats a graceful stop as a kill if peers may not have noticed the stop: a server
// that is cut off from etcd cannot delete its leases. It is unknown when a server deletes its
// leases between the stop request and its end.
func (f *Facts) unnoticedStops() {
	asked := map[process]history.Time{} // when a process was asked to stop
	for i, l := range f.lifecycle {
		of := process{l.Server, l.Incarnation}
		switch l.State {
		case history.StateStopping:
			asked[of] = l.At
		case history.StateStopped:
			leaving := window{l.At, l.At}
			if at, ok := asked[of]; ok {
				leaving.from = at
			}
			faults := f.linkFaults(link{l.Server, etcd}, leaving.widen(settle))
			if slices.ContainsFunc(faults, func(fault history.Fault) bool { return fault.Blocks }) {
				f.lifecycle[i].State = history.StateKilled
			}
		}
	}
}

// indexHops gives each operation its hops, which are one piece of memory for all operations.
func (f *Facts) indexHops(h *history.History) {
	byID := make(map[string]int, len(f.observations))
	for i, o := range f.observations {
		if first, ok := byID[o.op.ID]; ok {
			if *o.op.Sent != *f.observations[first].op.Sent { // else the client sent it again
				f.impossible.found("different operations have the Audit-ID %s", o.op.ID)
			}
			f.observations[first].shared, o.shared = true, true
			continue
		}
		byID[o.op.ID] = i
	}
	counts := make([]int, len(f.observations))
	total := 0
	possible := func(hop *history.Hop) (i int, ok bool) {
		i, ok = byID[hop.Operation]
		return i, ok && !f.observations[i].shared && f.hopCannotBe(f.observations[i].op, hop) == ""
	}
	for j := range h.Hops {
		hop := &h.Hops[j]
		if i, ok := possible(hop); ok {
			counts[i]++
			total++
		} else if i, ok := byID[hop.Operation]; ok && !f.observations[i].shared {
			f.impossible.found("the record of %s on server %q: %s", hop.Operation, hop.Server, f.hopCannotBe(f.observations[i].op, hop))
		}
	}
	free := make([]history.Hop, total)
	for i, o := range f.observations {
		o.hops, free = free[:0:counts[i]], free[counts[i]:]
	}
	for j := range h.Hops {
		if i, ok := possible(&h.Hops[j]); ok {
			f.observations[i].hops = append(f.observations[i].hops, h.Hops[j])
		}
	}
	for _, o := range f.observations {
		slices.SortFunc(o.hops, func(a, b history.Hop) int { return hopOrder(o.op.Server, a, b) })
		o.hops = slices.CompactFunc(o.hops, func(a, b history.Hop) bool {
			return a.Start == b.Start && a.End == b.End && *a.Entry == *b.Entry
		})
		f.withoutLateHops(o)
	}
}

// hopOrder sorts hops so that a hop that can contain another hop comes before it.
func hopOrder(asked string, a, b history.Hop) int {
	rank := func(h history.Hop) int {
		if h.Server == asked && !h.Rerouted {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End), cmp.Compare(rank(a), rank(b)),
		cmp.Compare(a.Server, b.Server), cmp.Compare(a.Status, b.Status), cmp.Compare(a.User, b.User),
		cmp.Compare(a.Groups, b.Groups), cmp.Compare(a.UID, b.UID), cmp.Compare(a.Extra, b.Extra),
		cmp.Compare(strconv.FormatBool(a.Rerouted), strconv.FormatBool(b.Rerouted)), cmp.Compare(a.From, b.From),
		cmp.Compare(a.Altered, b.Altered), cmp.Compare(a.Unauthenticated, b.Unauthenticated))
}
