package sim

import (
	"net/http"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/sim/vtime"
)

// sweepEvery is the time between two requests of a sweep, over all servers.
const sweepEvery = time.Second / 400

// sweep asks every server for everything that any server serves or lists.
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

// listed is everything there is to sweep: what any server serves, and what any server's merged discovery tells clients that there is. One that
// does not answer adds nothing but what it serves.
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

// look is a discovery document as the server shows it to the administrator. As with other backends nothing is done to the way there, and no history tells of it.
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
	var w shown
	srv.handler.ServeHTTP(&w, x.received())
	if w.status != http.StatusOK {
		return history.Document{}, false
	}
	return s.parse(w.body)
}

// shown is an answer that is read where it is written. The zero value is one that has not begun.
type shown struct {
	status int
	header http.Header
	body   []byte
}

func (w *shown) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

func (w *shown) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *shown) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.body = append(w.body, p...)
	return len(p), nil
}
