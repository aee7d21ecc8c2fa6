package sim

import (
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/sim/tape"
	"github.com/skewproof/skewproof/sim/vtime"
)

// Load sends requests continually, as the load on real servers does. Every server gets the same
// share, and the requests cover all resources that discovery lists.
type Load struct {
	QPS float64 `json:"qps"` // over all servers
	// Traffic says which requests get more weight.
	Traffic scenario.Traffic `json:"traffic,omitempty"`
	// Nodes is the share, in percent, of requests that a kubelet sends.
	Nodes int `json:"nodes,omitempty"`
	// ReadOnly sends only requests that read.
	ReadOnly bool `json:"readOnly,omitempty"`
}

// canSend reports whether the simulated servers can answer a request. They have no OpenAPI
// documents.
func canSend(r *workload.Request) bool { return r.Verb != history.VerbOpenAPI }

// choices are the random choices of a load, from the tape of a run.
type choices struct{ *tape.Tape }

func (c choices) IntN(n int) int { return c.Choose(tape.Workload, n) }

// load is the traffic of a run.
type load struct {
	every    time.Duration       // between two requests to one server
	lanes    []*workload.Chooser // by server
	known    workload.Classifier
	stale    bool // the servers' discovery has changed
	sessions map[client]*workload.Session
}

// client is a user of one server.
type client struct{ user, server string }

// newLoad prepares the load of a case. It returns the zero value if the case has no load.
func (s *Simulator) newLoad(l *Load) load {
	if l == nil {
		return load{}
	}
	every := float64(time.Second) * float64(len(s.names)) / workload.Rate(l.Traffic, l.QPS)
	made := load{every: time.Duration(every), stale: true}
	for _, name := range s.names {
		made.lanes = append(made.lanes, workload.NewChooser(workload.Options{
			Lane: name, Choices: choices{s.tape}, Profile: l.Traffic, Nodes: l.Nodes, ReadOnly: l.ReadOnly, Can: canSend,
		}))
	}
	return made
}

// startLoad starts the load, which ends with the steps.
func (s *Simulator) startLoad() {
	for i := range s.load.lanes {
		s.loop.After(s.load.every*time.Duration(i)/time.Duration(len(s.names)), nil, func() { s.lane(i) })
	}
}

// lane sends a request to one server, and calls itself again after the interval.
func (s *Simulator) lane(i int) {
	if s.driver.over {
		return
	}
	if s.load.stale {
		s.classify()
	}
	s.ask(&Request{Server: s.names[i], Request: s.load.lanes[i].Next()}, history.PurposeLoad)
	s.loop.After(s.load.every, nil, func() { s.lane(i) })
}

// classify computes the probes from the discovery of the running servers.
func (s *Simulator) classify() {
	documents := map[string]history.Document{}
	for _, srv := range s.servers {
		if srv.listening() {
			documents[srv.name] = srv.document()
		}
	}
	if len(documents) == 0 {
		return // keep the earlier probes
	}
	s.load.stale = false
	probes := s.load.known.Classify(documents)
	for _, lane := range s.load.lanes {
		lane.Use(probes)
	}
}

// session returns the state that the client of a request remembers.
func (s *Simulator) session(r *Request) *workload.Session {
	c := client{r.User, r.Server}
	if s.load.sessions[c] == nil {
		if s.load.sessions == nil {
			s.load.sessions = map[client]*workload.Session{}
		}
		s.load.sessions[c] = &workload.Session{}
	}
	return s.load.sessions[c]
}

// follow records an answer on which later requests may depend. It also sends the requests that the
// client makes because of the answer.
func (s *Simulator) follow(op *operation) {
	if again, more := op.asked.Again(); more && !s.driver.over {
		for _, name := range s.names {
			if name != op.Server {
				s.ask(&Request{Server: name, Request: again}, op.Purpose)
			}
		}
	}
	if op.Verb != history.VerbDiscovery && op.asked.Then == "" {
		return
	}
	next, more := s.session(&op.asked).Answered(&op.asked.Request, &op.Operation, op.x.body, func(hash string) (history.Document, bool) {
		d, ok := s.history.Documents[hash]
		return d, ok
	})
	if more && !s.driver.over {
		s.ask(&Request{Server: op.asked.Server, Request: next}, op.Purpose)
	}
}

// sweepEvery is the time between two requests of a sweep, over all servers.
const sweepEvery = time.Second / 400

// sweep sends requests to every server, for everything that any server serves or lists.
func (s *Simulator) sweep(d *driver) {
	var verbs []string // all
	if l := s.of.Load; l != nil && l.ReadOnly {
		verbs = workload.ReadVerbs
	}
	for _, r := range workload.Sweep(s.listed(d.task), verbs) {
		for _, name := range s.names {
			s.ask(&Request{Server: name, Request: r}, history.PurposeSweep)
			d.soak(d.task.Now() + sweepEvery)
		}
	}
}

// listed returns everything to sweep: the resources that any server serves, and those in the merged
// discovery of any server that answers.
func (s *Simulator) listed(t *vtime.Task) history.Document {
	var all, merged []history.Document
	for _, srv := range s.servers {
		if srv.phase != running {
			continue
		}
		all = append(all, srv.document())
		if !srv.gate.Open() {
			continue
		}
		for _, path := range []string{"/api", "/apis"} {
			if d, ok := srv.look(path, t); ok {
				merged = append(merged, d)
			}
		}
	}
	return workload.Union(append(all, merged...)...)
}

// look reads a discovery document as the administrator would, without faults on the way and without
// a record in the history. Other backends do the same.
func (srv *server) look(path string, t *vtime.Task) (d history.Document, ok bool) {
	defer func() {
		if r := recover(); r != nil && r != http.ErrAbortHandler { //nolint:errorlint // net/http compares likewise
			panic(r)
		}
	}()
	s := srv.s
	op, x := s.newOperation(), s.newExchange()
	op.User, op.template = "admin", s.templateOf(&workload.Request{Verb: history.VerbDiscovery, Path: path})
	x.op, x.target, x.task, x.request, x.hop, x.root = op, srv, t, op.template.request, -1, -1
	x.context = requestContext{x: x, values: s.values(x)}
	w := httptest.NewRecorder()
	srv.handler.ServeHTTP(w, x.received())
	if w.Code != http.StatusOK {
		return history.Document{}, false
	}
	return s.parse(w.Body.Bytes())
}
