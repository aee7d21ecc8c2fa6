package sim

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim/recorded"
	"github.com/skewproof/skewproof/sim/tape"
	"github.com/skewproof/skewproof/sim/vtime"
)

// Setup is the part that all runs of a simulator have in common.
type Setup struct {
	// Policy returns the policy of the proxy of a server of that version. It returns false if the
	// feature is off. Required.
	Policy func(version string) (proxy.Policy, bool)
	// Reference says how the proxies find each other. True: as in proxy/apiserver. The server
	// publishes an endpoint lease, joins leases in a [peers.Roster], closes silent connections after
	// 10 s, and withdraws its leases after its shutdown delay. False: as released kube-apiservers do,
	// which write their addresses to etcd and read those of their peers there.
	Reference bool
	// Version returns the resources of a version. Required. It should return the same pointer for
	// the same name.
	Version func(name string) (*recorded.Version, error)
	// Defects are planted; see [Defects]. Zero: none.
	Defects Defects
}

// Simulator runs cases, one after the other, and reuses its memory. It is not safe for concurrent
// use.
type Simulator struct {
	setup Setup
	loop  vtime.Loop
	of    *Case // the case in progress
	tape  *tape.Tape
	trace trace

	servers []*server
	naming
	namings    []naming // of earlier cases: a search may have one number of servers after the other
	links      []link
	extensions []definition // in etcd, in the order in which they were created
	objects    map[object]bool
	population map[schema.GroupResource]int // number of objects, and of the labelled objects of large lists
	labelled   map[schema.GroupResource]int
	permits    map[*recorded.Version]*recorded.Behaviour
	beating    bool
	withdrawn  bool // servers may not read the discovery of their peers

	driver      driver
	load        load
	history     *history.History
	outstanding int
	asked       []int // number of requests, by server
	requests    int
	reached     Reached
	counts      Counts

	// These are caches of values that are the same in every run.
	ids       []string
	templates map[workload.Request]*template
	indexes   map[*recorded.Version]map[resourceKey][]string
	extended  map[string]*extendedDocument
	parsed    map[string]history.Document
	users     map[string]user.Info
	snapshots map[string]*snapshot

	// This is memory that a run uses and the next run reuses.
	exchanges  kept[exchange]
	sharing    history.Sharing
	operations kept[operation]
	rounds     kept[round]
	toxics     []fault.Fault
	recycled   *history.History
}

// New returns a simulator.
func New(setup Setup) *Simulator {
	return &Simulator{
		setup: setup, templates: map[workload.Request]*template{}, indexes: map[*recorded.Version]map[resourceKey][]string{},
		extended: map[string]*extendedDocument{}, parsed: map[string]history.Document{}, users: map[string]user.Info{},
		snapshots: map[string]*snapshot{},
		objects:   map[object]bool{}, population: map[schema.GroupResource]int{}, labelled: map[schema.GroupResource]int{},
		permits: map[*recorded.Version]*recorded.Behaviour{},
	}
}

// Close releases what the simulator keeps. The simulator may be used again.
func (s *Simulator) Close() { s.loop.Close() }

// Result is the result of a run.
type Result struct {
	// History records the run. It belongs to the caller, who may give it back (Simulator.Recycle).
	History *history.History
	// Hash is the hash of the whole trace.
	Hash uint64
	// Reached are the interesting states that the run reached.
	Reached Reached
	// Counts are the numbers of requests between servers.
	Counts Counts
	// Events is the number of simulated events, and Until the virtual time at the end.
	Events int
	Until  vtime.Time
	// Stopped is true if Options.Stop ended the run.
	Stopped bool

	trace []entry
	names []string
}

// WriteTrace writes the trace of a run, one line for each entry. The run must have the option
// Trace.
func (r *Result) WriteTrace(w io.Writer) error {
	t := trace{entries: r.trace}
	return t.write(w, r.names)
}

// Options are the options of a single run.
type Options struct {
	// Trace keeps the trace for Result.WriteTrace.
	Trace bool
	// StopAtError ends the run at the first step that fails, as on real servers. The end of the
	// history gives the reason. Otherwise the run goes on.
	StopAtError bool
	// Stop, once it returns true, ends the run early. The history then has what was recorded until
	// then, and its end says that the run was stopped. Nil never ends a run.
	Stop func() bool
	// Run is the start of the history; the simulator fills in its servers. Zero: empty.
	Run history.Run
}

// maxRun is the maximum virtual time of a run. The end of the history says what was not done by
// then.
const maxRun = 24 * time.Hour

// Run carries out a case. It returns an error if it cannot carry the case out. No behaviour of
// servers and clients is an error.
func (s *Simulator) Run(c *Case, t *tape.Tape, o Options) (*Result, error) {
	if err := s.prepare(c, t, o); err != nil {
		return nil, err
	}
	plan := scenario.Plan{Servers: c.Servers}
	if c.Settled && !plan.Setups() { // a snapshot has only servers without setups
		if err := s.settle(c, t, o); err != nil {
			return nil, err
		}
	} else if err := s.startAll(c); err != nil {
		return nil, err
	}
	s.loop.Go(nil, s.driver.run)
	stopped := false
	s.loop.RunWhile(func() bool {
		if o.Stop != nil && s.loop.Steps()%stopEvery == 0 {
			stopped = o.Stop()
		}
		return !stopped && (!s.driver.over || s.outstanding > 0) && s.loop.Now() < maxRun
	})
	if !s.driver.over {
		s.driver.steps.Finish()
	}
	s.driver.steps.Heal()
	for _, srv := range s.servers {
		srv.unsight()
		srv.tellCounted()
	}
	s.history.End.At, s.history.End.Complete = s.loop.Now(), true
	for i, hop := range s.history.Hops {
		if hop.Status == 0 { // no answer has begun, and the next run uses the entry of the exchange again
			s.history.Hops[i] = s.sharing.Hop(hop)
		}
	}
	switch left := s.left(c); {
	case s.history.End.Error != "":
	case stopped:
		s.history.End.Error = stoppedBefore(left)
	case left != "":
		s.history.End.Error = fmt.Sprintf("the simulator gives a run %s of virtual time, and after that %s", maxRun, left)
	}
	result := &Result{
		History: s.history, Hash: s.trace.hash, Reached: s.reached, Counts: s.counts,
		Events: s.loop.Steps(), Until: s.loop.Now(), Stopped: stopped, names: s.names,
	}
	if o.Trace {
		result.trace = append([]entry(nil), s.trace.entries...)
	}
	s.loop.Reset()
	return result, nil
}

// startAll starts every server, with a short time between them.
func (s *Simulator) startAll(c *Case) error {
	for i, srv := range s.servers {
		release := c.Servers[i].Version
		v, err := s.serves(release, c.Servers[i].Setup)
		if err != nil {
			return err
		}
		s.loop.After(time.Duration(s.tape.Choose(tape.Delays, 4))*300*time.Millisecond, nil, func() { srv.start(release, v) })
	}
	return nil
}

// prepare resets everything to the state before a run.
func (s *Simulator) prepare(c *Case, t *tape.Tape, o Options) error {
	if err := checkSetups(c); err != nil {
		return err
	}
	s.of, s.tape = c, t
	s.trace.reset(o.Trace)
	s.counts = Counts{}
	clear(s.objects)
	clear(s.population)
	clear(s.labelled)
	s.extensions, s.beating, s.withdrawn = nil, false, false
	s.outstanding, s.requests, s.reached = 0, 0, 0
	s.exchanges.used, s.operations.used, s.rounds.used = 0, 0, 0
	s.newHistory(c, o)
	s.resize(c)
	s.load = s.newLoad(c.Load)
	for i, spec := range c.Servers {
		srv := s.servers[i]
		*srv = server{s: s, index: i, name: spec.Name, id: s.serverIDs[i], address: s.addresses[i],
			knowledge: knowledge{view: srv.view, asked: srv.asked[:0]}, incoming: srv.incoming[:0], rerouted: srv.rerouted[:0]}
		s.history.Run.Servers[i] = history.Server{Name: spec.Name, ID: string(srv.id), Version: spec.Version, Address: srv.address}
	}
	return s.driver.reset(s, c, o.StopAtError)
}

// newHistory starts the history of a run. It reuses the memory of a history that was given back, if
// there is one.
func (s *Simulator) newHistory(c *Case, o Options) {
	h := s.recycled
	s.recycled = nil
	if h == nil {
		h = &history.History{Documents: make(map[string]history.Document, 4)}
	}
	clear(h.Documents)
	servers := slices.Grow(h.Run.Servers[:0], len(c.Servers))[:len(c.Servers)]
	*h = history.History{
		Run: o.Run, Documents: h.Documents, Operations: slices.Grow(h.Operations[:0], len(c.Requests)),
		Hops:      slices.Grow(h.Hops[:0], 2*len(c.Requests)),
		Lifecycle: h.Lifecycle[:0], Served: h.Served[:0], Configurations: h.Configurations[:0], Leases: h.Leases[:0], Steps: h.Steps[:0],
		Faults: h.Faults[:0], Counted: h.Counted[:0],
	}
	h.Run.Servers = servers
	s.history = h
}

// Recycle takes back the history of a result, for the next run. The caller must not use the history
// afterwards.
func (s *Simulator) Recycle(r *Result) { s.recycled, r.History = r.History, nil }

// resize makes room for the servers of a case.
func (s *Simulator) resize(c *Case) {
	n := len(c.Servers)
	s.servers = slices.Grow(s.servers[:0], n)[:n] // of an earlier case, or nil
	for i := range s.servers {
		if s.servers[i] == nil {
			s.servers[i] = &server{}
		}
	}
	if !slices.EqualFunc(c.Servers, s.names, func(server scenario.Server, name string) bool { return server.Name == name }) {
		s.name(c)
	}
	s.asked = slices.Grow(s.asked[:0], n)[:n]
	clear(s.asked)
	ends := n + 2
	s.links = slices.Grow(s.links[:0], ends*ends)[:ends*ends]
	for from := range ends {
		for to := range ends {
			l := &s.links[from*ends+to]
			clear(l.inFlight)
			*l = link{from: from, to: to, on: l.on[:0], inFlight: l.inFlight[:0]}
		}
	}
}

// naming are the names of the servers of a case, and what follows from them. It is immutable.
type naming struct {
	names     []string
	serverIDs []proxy.ServerID
	addresses []string
	byName    map[string]int
	byID      map[proxy.ServerID]int
	byAddress map[string]int
}

// mostNamings bounds the namings that are kept.
const mostNamings = 8

// name takes the names of the servers from a case.
func (s *Simulator) name(c *Case) {
	for _, known := range s.namings {
		if slices.EqualFunc(c.Servers, known.names, func(server scenario.Server, name string) bool { return server.Name == name }) {
			s.naming = known
			return
		}
	}
	n := len(c.Servers)
	s.naming = naming{byName: make(map[string]int, n), byID: make(map[proxy.ServerID]int, n), byAddress: make(map[string]int, n)}
	for i, server := range c.Servers {
		id, address := proxy.ServerID("apiserver-"+server.Name), server.Name+":"+securePort
		s.names, s.serverIDs, s.addresses = append(s.names, server.Name), append(s.serverIDs, id), append(s.addresses, address)
		s.byName[server.Name], s.byID[id], s.byAddress[address] = i, i, i
		s.byAddress[decoy(server.Name)+":"+securePort], s.byAddress[own(server.Name)+":"+securePort] = i, i // the obstacle is on the link
	}
	if len(s.namings) == mostNamings {
		s.namings = s.namings[:0]
	}
	s.namings = append(s.namings, s.naming)
}

// requestsAfter sends the requests that follow a step.
func (s *Simulator) requestsAfter(c *Case, step int) {
	for i := range c.Requests {
		if r := &c.Requests[i]; r.Step == step {
			s.outstanding++
			op := s.newOperation()
			op.asked = *r
			s.loop.Schedule(s.loop.Now()+max(0, r.After), nil, (*asking)(op))
		}
	}
}

// asking is the event that the time of a request has come.
type asking operation

func (a *asking) Happen() {
	a.s.outstanding--
	a.s.launch((*operation)(a), history.PurposeLoad)
}

// epoch is the wall time at which every run begins.
var epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

func (s *Simulator) wall() time.Time              { return epoch.Add(s.loop.Now()) }
func (s *Simulator) at(t vtime.Time) time.Time    { return epoch.Add(t) }
func (s *Simulator) since(t time.Time) vtime.Time { return t.Sub(epoch) }

// minorOf returns the minor version of a version such as "v1.37.1"; -1 if the version is not valid.
func minorOf(version string) int {
	_, minor, ok := strings.Cut(semver.MajorMinor(version), ".")
	n, err := strconv.Atoi(minor)
	if !ok || err != nil {
		return -1
	}
	return n
}

func itoa(n int) string { return strconv.Itoa(n) }
