package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/traffic"
	"github.com/skewproof/skewproof/sim/tape"
)

// Load asks continually: every server the same share, of everything that discovery lists, in the proportions of the real load.
type Load struct {
	QPS float64 `json:"qps"` // over all servers
	// Traffic is where its weight lies. The simulator has no OpenAPI, and of hostile headers that of the hop; a client says nothing on a connection that is upgraded.
	Traffic scenario.Traffic `json:"traffic,omitempty"`
}

// load is the traffic of a run.
type load struct {
	every   time.Duration // between two requests to one server
	mix     traffic.Mix
	probes  map[traffic.Class][]traffic.Probe
	known   traffic.Classifier
	stale   bool // what servers serve has changed
	visited map[string]int
	created int

	profile  scenario.Traffic
	last     []edition         // by server: the merged document that it last gave
	editions map[string]string // documents by ETag
	tags     []string          // those, in the order in which they were first seen
	herd     history.GVR
	grazing  int // objects of the herd so far
}

// startLoad begins to ask. It goes on until the steps are over.
func (s *Simulator) startLoad(l *Load) {
	s.load = load{
		every: time.Duration(float64(time.Second) * float64(len(s.servers)) / l.QPS), mix: traffic.DefaultMix,
		stale: true, visited: map[string]int{}, profile: l.Traffic, last: make([]edition, len(s.servers)), editions: map[string]string{},
	}
	if l.Traffic == scenario.SparseTraffic {
		s.load.every *= sparseness
	}
	for i := range s.servers {
		s.loop.After(s.load.every*time.Duration(i)/time.Duration(len(s.servers)), nil, func() { s.lane(i) })
	}
}

// lane asks one server, and again after a while.
func (s *Simulator) lane(i int) {
	if s.driver.over {
		return
	}
	if s.load.stale {
		s.classify()
	}
	r, ok := s.special(i)
	if !ok {
		r = s.choose()
	}
	if s.load.profile == scenario.HostileTraffic {
		s.forge(&r)
	}
	r.Server = s.names[i]
	r.User = users[s.tape.Choose(tape.Workload, len(users))]
	if strings.HasPrefix(r.Name, herdPrefix) {
		r.User = users[0] // who may write everywhere
	}
	s.ask(&r, history.PurposeLoad)
	s.loop.After(s.load.every, nil, func() { s.lane(i) })
}

// forge makes a third of the requests bear the header of the hop: it says that a peer has passed the request on, or that none has.
func (s *Simulator) forge(r *Request) {
	if s.tape.Choose(tape.Workload, 3) == 0 {
		r.Denied = s.tape.Choose(tape.Workload, 2) == 1
		r.Forged = !r.Denied
	}
}

// users are the callers of the load.
var users = [...]string{"admin", "skewproof-reader", "system:serviceaccount:skewproof:skewproof"}

// classify makes the probes of what the servers that are up serve.
func (s *Simulator) classify() {
	documents := map[string]history.Document{}
	for _, srv := range s.servers {
		if srv.phase == running {
			documents[srv.name] = srv.document()
		}
	}
	if len(documents) == 0 {
		return // what there was will be asked for again
	}
	s.load.stale = false
	s.load.probes = map[traffic.Class][]traffic.Probe{}
	for _, p := range s.load.known.Classify(documents) {
		s.load.probes[p.Class] = append(s.load.probes[p.Class], p)
	}
}

// choose is the next request, without its server.
func (s *Simulator) choose() Request {
	n := s.tape.Choose(tape.Workload, 100)
	if n < s.load.mix.Discovery {
		return Request{Verb: history.VerbDiscovery, Path: [...]string{"/apis", "/api"}[s.tape.Choose(tape.Workload, 2)]}
	}
	class := traffic.Everywhere
	switch n -= s.load.mix.Discovery; {
	case n < s.load.mix.Somewhere:
		class = traffic.Somewhere
	case n < s.load.mix.Somewhere+s.load.mix.Nowhere:
		class = traffic.Nowhere
	}
	probes := s.load.probes[class]
	if len(probes) == 0 {
		probes = s.load.probes[traffic.Everywhere]
	}
	if len(probes) == 0 {
		return Request{Verb: history.VerbDiscovery, Path: "/apis"}
	}
	return s.probe(probes[s.tape.Choose(tape.Workload, len(probes))])
}

// probe asks for a resource with one of its verbs after the other.
func (s *Simulator) probe(p traffic.Probe) Request {
	r := Request{GVR: p.Resource.GVR, Subresource: p.Subresource, Name: "absent"}
	verbs := p.Resource.Verbs
	if p.Subresource != "" {
		verbs = []string{"get"}
		if i := slices.IndexFunc(p.Resource.Subresources, func(s history.Subresource) bool { return s.Name == p.Subresource }); i >= 0 {
			verbs = p.Resource.Subresources[i].Verbs
		}
	}
	key := r.GVR.String() + "/" + r.Subresource
	for range verbs {
		verb := verbs[s.load.visited[key]%len(verbs)]
		s.load.visited[key]++
		if _, ok := methods[verb]; !ok || isWrite(verb) && s.keeps(r.GVR) {
			continue
		}
		r.Verb = verb
		switch verb {
		case "watch":
			r.For = time.Duration(1+s.tape.Choose(tape.Workload, 3)) * time.Second
		case "list":
			if s.tape.Choose(tape.Workload, 3) == 2 {
				r.Verb = history.VerbTable
			} else if s.load.visited[key]%2 == 0 { // as clients do that would rather have protobuf
				r.Accept = "application/vnd.kubernetes.protobuf,application/json"
			}
		case "create":
			s.load.created++
			r.Name = "load-" + itoa(s.load.created)
		}
		return r
	}
	r.Verb = "get"
	return r
}
