package sim

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

// Judging a history takes longer than the run. So every answer is checked when it arrives. If no
// answer can violate an invariant, the history need not be judged. Most suspicious answers violate
// nothing.

// situation is the state of the servers when a request was sent, as far as it matters for the
// request.
type situation struct {
	local   bool  // the asked server serves the resource
	capable []int // the other servers that are running and serve the resource
	life    int   // the incarnation of the asked server, 0 if it is not ready
	hops    int   // number of times that the request was forwarded
	logged  int   // the status that a peer recorded last, 0 if none did
	counted int   // the status of a peer's answer that the asked server counted last, 0 if it counted none
}

// situate records the situation of a request when it is sent.
func (s *Simulator) situate(op *operation) {
	asked := s.servers[op.at]
	if asked.phase == running && asked.gate.Open() {
		op.life = asked.incarnation
	}
	if op.Verb == history.VerbDiscovery || op.Verb == history.VerbNoPeer || op.Verb == history.VerbLegacy {
		return
	}
	k := op.about()
	for i, srv := range s.servers {
		if srv.phase != running {
			continue
		}
		if !srv.lists(op.template, k) {
			continue
		}
		if srv == asked {
			op.local = true
		} else {
			op.capable = append(op.capable, i)
		}
	}
}

func (op *operation) about() resourceKey {
	return resourceKey{op.GVR.Group, op.GVR.Version, op.GVR.Resource, op.Subresource}
}

// suspectHop checks a server's own record of a request when the server starts to handle the
// request.
func (x *exchange) suspectHop(h *history.Hop) {
	if h.User != x.op.User || h.Groups != ownGroups || h.UID != ownUID || h.Extra != ownExtra || h.Altered != "" ||
		x.parent != nil && x.parent.parent != nil {
		x.s.suspect = true
	}
	if x.parent != nil {
		x.op.hops++
		if x.op.hops > 1 && isWrite(x.op.Verb) {
			x.s.suspect = true
		}
	}
}

// misrecorded reports whether a server may have recorded or counted another status than the client
// got. The invariants AuditedAlike and CountedAlike judge that.
func (op *operation) misrecorded() bool {
	if op.logged == 0 || op.Failure != history.FailureNone || op.Status >= http.StatusInternalServerError {
		return false
	}
	return op.logged != op.Status || op.x.entry.Status != op.Status ||
		op.counted != op.Status && op.GVR.Resource != "" && op.Verb != "watch" && !op.asked.Upgrade
}

// overdue reports whether the client waited in vain for longer than Unavailable. A list, or a write
// behind a webhook, may take longer.
func (op *operation) overdue() bool {
	succeeded := op.Status >= http.StatusOK && op.Status < http.StatusMultipleChoices && op.Failure == history.FailureNone
	return op.Verb != "watch" && !succeeded && op.End-op.Start > history.DefaultBounds.Unavailable
}

// doubt checks an answer.
func (s *Simulator) doubt(op *operation) {
	s.suspect = s.suspect || op.misrecorded()
	asked := s.servers[op.at]
	if op.life == 0 && asked.since == op.Start { // it became ready at the same instant
		op.life = asked.incarnation
	}
	if op.Status >= http.StatusInternalServerError && asked.changed >= op.Start && op.template != nil && asked.lists(op.template, op.about()) {
		s.suspect = true // it began to serve it when the request came
	}
	if s.suspect || op.life == 0 {
		return
	}
	if op.overdue() {
		s.suspect = true // even if the asked server ended afterwards
		return
	}
	if asked.incarnation != op.life || asked.phase != running || !asked.gate.Open() {
		return // it was not ready all the time, so its answer may be anything
	}
	s.suspect = s.doubtful(op, asked)
}

func (s *Simulator) doubtful(op *operation, asked *server) bool {
	known := op.local || len(op.capable) > 0
	// Converges allows no excuse.
	late := op.End > s.driver.steps.Disturbed()+history.DefaultBounds.Convergence
	ignorant := op.Start < asked.since+history.DefaultBounds.Staleness
	switch {
	case op.Content == history.ContentBroken:
		return true
	case op.User == workload.Reader && isWrite(op.Verb) && op.Status >= http.StatusOK && op.Status < http.StatusMultipleChoices:
		return true // somebody must have refused it
	case !op.local && known && op.odd():
		return true
	case op.Status == http.StatusForbidden: // the hops say which user the server saw
		return false
	case op.Verb == history.VerbDiscovery, op.Verb == history.VerbNoPeer, op.Items > 0, op.Accept != "":
		return true
	case op.Status == http.StatusNotFound && op.Missing == history.MissingResource:
		return known && (late || op.local || !ignorant)
	case !known && op.Status == http.StatusServiceUnavailable:
		return late || s.calm(op, asked)
	case !known:
		return op.Status != http.StatusNotFound && op.Status != 0
	case op.Body == history.BodyEvents && !op.local && (op.Events == 0 || op.End-op.Start < op.lasts):
		return true
	case op.Status < http.StatusInternalServerError && op.Status != 0 && op.Failure == history.FailureNone:
		return false
	case op.Status != 0 && op.Status < http.StatusInternalServerError && op.Verb == "watch":
		return false
	}
	return s.failed(op, asked, late, ignorant)
}

// odd reports whether a request that had to be forwarded got an answer that is rare for a request
// that is served locally. The invariant AnsweredAlike judges such answers.
func (op *operation) odd() bool {
	switch op.Status {
	case http.StatusSwitchingProtocols:
		return !op.asked.Upgrade
	case http.StatusOK:
		return op.asked.Upgrade && op.asked.Protocol == "" || op.Verb == "create"
	case 0, http.StatusCreated, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity:
		return false
	case http.StatusForbidden:
		return !strings.Contains(op.Message, strconv.Quote(op.User))
	}
	return op.Status < http.StatusInternalServerError
}

// failed checks a request that failed although some server serves the resource. It may fail if no
// such server could be reached.
func (s *Simulator) failed(op *operation, asked *server, late, ignorant bool) bool {
	if s.link(asked.index, s.etcdEnd()).impaired() || s.link(s.clientEnd(), asked.index).impaired() {
		return false // without etcd the server cannot answer any request, and the client's own link is not the server's fault
	}
	if op.local {
		return true
	}
	reached := false
	for _, i := range op.capable {
		p := s.servers[i]
		l := s.link(asked.index, i)
		if p.phase != running || !p.gate.Open() || l.impaired() {
			continue
		}
		reached = true
		served := p.readyAt
		if _, builtIn := s.index(p.version)[op.about()]; !builtIn {
			served = max(served, p.changed)
		}
		informed := !ignorant && op.Start >= max(served, l.changed)+history.DefaultBounds.Staleness
		if (informed || late) && !s.link(i, s.etcdEnd()).impaired() {
			return true
		}
	}
	return !reached && op.Status != http.StatusServiceUnavailable
}

// calm reports whether a server must know that no server serves the resource: no server has
// started, ended or been unreachable lately.
func (s *Simulator) calm(op *operation, asked *server) bool {
	from := op.Start - history.DefaultBounds.Staleness
	if s.link(asked.index, s.etcdEnd()).impaired() {
		return false
	}
	for i, srv := range s.servers {
		switch {
		case srv.since >= from || srv.changed >= from:
			return false
		case srv.lost:
			return false
		case srv != asked && srv.phase == running && (!srv.gate.Open() || s.link(asked.index, i).impaired() || s.link(i, s.etcdEnd()).impaired()):
			return false
		}
	}
	return true
}

// impaired reports whether a fault on the link may keep answers back.
func (l *link) impaired() bool {
	for _, a := range l.on {
		if impairs(a.Kind) {
			return true
		}
	}
	return false
}

// impairs reports whether a kind of fault may keep answers back. Other kinds only delay them.
func impairs(k fault.Kind) bool {
	switch k {
	case fault.Latency, fault.Bandwidth, fault.Slicer, fault.SlowClose:
		return false
	}
	return true
}
