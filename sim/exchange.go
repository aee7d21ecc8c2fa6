package sim

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/sim/vtime"
)

// exchange is one request over one link, with its answer.
type exchange struct {
	s      *Simulator
	op     *operation // the client's operation, the same at every hop
	link   *link
	target *server
	life   int // the incarnation of the target that the request reached
	// parent is the exchange of the original request if a server has forwarded this one.
	parent   *exchange
	children []*exchange // the requests that the target has forwarded

	request *http.Request // as it was sent; own once it has arrived
	own     *http.Request // request as the target sees it, with the target's context; the object is reused by later exchanges
	payload []byte        // its body
	answer  responder     // the answer as the target writes it
	task    *vtime.Task
	context requestContext

	// The part of the answer that has come back. The requester is told about each change.
	requester requester
	connected bool
	status    int
	header    http.Header
	body      []byte // the part of said that has arrived
	read      int    // number of bytes of body that the requester has read
	ended     bool
	err       error // nil unless the exchange is broken

	said         []byte      // the body so far, as the target has written it
	answerHeader http.Header // as its handler writes it
	coming       []part      // the pieces of the answer, in order
	came         int         // number of them that have arrived
	lastArrival  vtime.Time
	sent         int      // bytes of the answer so far
	lost         bool     // in a black hole
	doomed       *active  // to be reset by this fault, unless it is healed before
	held         []func() // called when that fault is healed
	shaking      bool     // waits for a handshake with a stopped process
	fetched      fetched
	brought      int           // number of bytes of a document that a fetch has received
	root         int           // of a fetch of discovery: which document; -1 for a request
	gone         bool          // the requester has given up, or the exchange is over
	arrived      bool          // the target has it
	hop          int           // index of its record in the history, -1 if there is none
	entry        history.Entry // of that record
}

// requester waits for an answer.
type requester interface {
	progressed() // called whenever a piece of the answer has arrived
}

// send starts an exchange.
func (s *Simulator) send(l *link, op *operation, parent *exchange, request *http.Request, payload []byte, by requester) *exchange {
	x := s.newExchange()
	x.op, x.link, x.parent, x.request, x.payload, x.requester = op, l, parent, request, payload, by
	x.target, x.hop, x.root = s.servers[l.to], -1, -1
	l.inFlight = append(l.inFlight, x)
	if parent != nil {
		parent.children = append(parent.children, x)
	}
	s.dial(x)
	return x
}

// dial finds or makes a connection, or learns that it cannot be made.
func (s *Simulator) dial(x *exchange) {
	l := x.link
	if a := l.has(fault.Cut, ""); a != nil {
		a.record.Evidence.Refused++
		s.refuse(x)
		return
	}
	if !x.target.listening() {
		s.refuse(x)
		return
	}
	if s.obstructed(x) {
		return
	}
	up, down := l.has(fault.Timeout, fault.Up), l.has(fault.Timeout, fault.Down)
	switch {
	case up != nil: // on an existing connection the request never arrives
		x.connected, up.fed[0] = l.warm, s.loop.Now()
		s.lose(x, up)
		return
	case down != nil && !l.warm:
		s.lose(x, down)
		return
	}
	if !l.warm && !x.target.gate.Open() { // the target's kernel accepts the connection, but its stopped process does not answer
		s.reached.note(ReachedPaused)
		x.shaking = true
		s.handshake(x)
		return
	}
	if !l.warm {
		l.carried, l.asked = 0, 0
	}
	x.connected, l.warm = true, true
	took := s.delay(l, fault.Up, headerBytes)
	l.asked += headerBytes
	if a := l.has(fault.LimitData, fault.Up); a != nil && l.asked > a.Bytes {
		x.lost = true
		s.loop.After(took, nil, func() {
			if !x.gone {
				s.breakConnection(l, a)
			}
		})
		return
	}
	if a := l.has(fault.Reset, fault.Up); a != nil {
		s.doom(x, a, took, func() { s.deliver(x, took) })
		return
	}
	s.deliver(x, took)
}

// deliver lets a request arrive after the time took.
func (s *Simulator) deliver(x *exchange, took time.Duration) {
	l := x.link
	if !x.target.gate.Open() {
		s.reached.note(ReachedPaused)
	}
	if !x.target.gate.Open() || s.tooSlow(l) {
		s.watch(l)
	}
	x.life = x.target.incarnation
	s.loop.Schedule(s.loop.Now()+took, x.target.gate, (*delivery)(x))
}

// delivery is the event that a request arrives.
type delivery exchange

func (d *delivery) Happen() {
	if x := (*exchange)(d); !x.gone {
		x.s.arrive(x)
	}
}

// doom resets the connection of the exchange, and all on it, when the time of the fault has passed
// since the first data. If the fault is healed before, nothing is lost and goOn is called.
func (s *Simulator) doom(x *exchange, a *active, took time.Duration, goOn func()) {
	x.held = append(x.held, goOn)
	if x.doomed != nil {
		return
	}
	x.doomed = a
	s.loop.After(took+a.After, nil, func() {
		if x.doomed == a && !x.gone {
			s.breakConnection(x.link, a)
		}
	})
}

// spare lets the exchanges continue that the fault would have reset.
func (s *Simulator) spare(l *link, a *active) {
	for _, x := range slices.Clone(l.inFlight) {
		if x.doomed != a {
			continue
		}
		held := x.held
		x.doomed, x.held = nil, nil
		for _, goOn := range held {
			if !x.gone {
				goOn()
			}
		}
	}
}

func (s *Simulator) refuse(x *exchange) {
	s.loop.Schedule(s.loop.Now()+s.latency(), nil, (*refusal)(x))
}

// refusal is the event that a connection is refused, because no process listens.
type refusal exchange

func (r *refusal) Happen() { (*exchange)(r).broken(errRefused) }

// lose makes the exchange hang until its requester gives up, the fault is healed, or the time of
// the fault is over: for a connection see [Simulator.expire], for a handshake it counts from the
// first data.
func (s *Simulator) lose(x *exchange, a *active) {
	if x.lost {
		return
	}
	x.lost = true
	a.record.Evidence.Affected++
	if x.connected {
		s.watch(x.link)
	} else {
		s.handshake(x)
	}
	if a.After > 0 && !x.connected {
		s.loop.After(a.After, nil, func() { x.broken(errReset) })
	}
}

// The timeouts of client-go's transport for dialling and for TLS. A shorter DialTimeout of a policy
// replaces them.
const (
	dialTimeout      = 30 * time.Second
	handshakeTimeout = 10 * time.Second
)

// errDial means that no path leads to an address. errHandshake means that no process answers a
// handshake.
var (
	errDial      = &netError{text: "i/o timeout", undelivered: true, timeout: true}
	errHandshake = &netError{text: "TLS handshake timeout", undelivered: true, timeout: true}
)

// handshake ends the exchange after a timeout, unless it has a connection by then.
func (s *Simulator) handshake(x *exchange) { s.giveUpAfter(x, handshakeTimeout, errHandshake) }

// giveUpAfter ends the exchange if it has no connection after the limit.
func (s *Simulator) giveUpAfter(x *exchange, limit time.Duration, err error) {
	if x.link.from < len(s.servers) {
		if dial := s.servers[x.link.from].policy.Routing.DialTimeout; dial > 0 {
			limit = dial
		}
	}
	s.loop.After(limit, nil, func() {
		if !x.connected {
			x.broken(err)
		}
	})
}

// arrive gives the request to the target.
func (s *Simulator) arrive(x *exchange) {
	if x.target.incarnation != x.life || !x.target.listening() && x.target.phase != stopping {
		x.broken(errReset)
		return
	}
	if !x.target.listening() {
		x.putOff()
		return
	}
	if s.unauthorized(x) {
		return
	}
	if x.root >= 0 {
		s.arriveFetch(x)
		return
	}
	x.connected, x.arrived = true, true
	x.target.incoming = append(x.target.incoming, x)
	x.answer = responder{x: x}
	x.context = requestContext{x: x, values: s.values(x)}
	x.request = x.received()
	x.task = s.loop.Start(x.target.gate, (*serving)(x))
}

// putOff answers a request that was sent while the target still listened, and arrives later, like a
// kube-apiserver that stops (k8s.io/apiserver, pkg/server/filters, WithWaitGroup and
// WithWatchTerminationDuringShutdown). It logs no such request, so there is no hop.
func (x *exchange) putOff() {
	const body = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"apiserver is shutting down",` +
		`"reason":"ServiceUnavailable","code":503}`
	x.answerAtOnce(http.StatusServiceUnavailable, http.Header{"Retry-After": {"1"}}, body)
}

// answerAtOnce answers with a Status, before the request reaches the handler.
func (x *exchange) answerAtOnce(status int, header http.Header, body string) {
	header["Content-Type"], header["Content-Length"] = jsonHeader, []string{itoa(len(body))}
	x.said = append(x.said, body...)
	x.back(headerBytes+len(body), part{status: status, header: header, said: len(body), ends: true})
}

// received returns the request as the target sees it.
func (x *exchange) received() *http.Request {
	sent, own := x.request, x.own
	own.Method, own.URL, own.Header, own.Host, own.RemoteAddr = sent.Method, sent.URL, sent.Header, sent.Host, sent.RemoteAddr
	own.Proto, own.ProtoMajor, own.ProtoMinor = sent.Proto, sent.ProtoMajor, sent.ProtoMinor
	own.Form, own.PostForm, own.MultipartForm = nil, nil, nil // these belong to an earlier request
	own.Body, own.ContentLength = http.NoBody, int64(len(x.payload))
	if len(x.payload) > 0 {
		own.Body = io.NopCloser(bytes.NewReader(x.payload))
	}
	return own
}

// serving is the task in which the target handles the request.
type serving exchange

func (g *serving) Do(*vtime.Task) { g.target.serve((*exchange)(g)) }

// broken ends the exchange at both ends now.
func (x *exchange) broken(err error) {
	if x.gone {
		return
	}
	if !x.ended || x.status == 0 {
		x.err = err
	}
	x.link.warm = x.link.warm && !errors.Is(err, errReset)
	x.drop()
	x.cancelFar()
	x.requester.progressed()
}

// giveUp ends the exchange for the requester. The target learns this unless the link is blocked.
func (x *exchange) giveUp() {
	if x.gone {
		return
	}
	x.drop()
	if !x.lost && x.link.has(fault.Cut, "") == nil && x.link.has(fault.Timeout, fault.Up) == nil {
		x.s.loop.After(x.s.latency(), x.target.gate, x.cancelFar)
	}
}

// drop removes the exchange from its link.
func (x *exchange) drop() {
	x.gone = true
	x.link.inFlight = without(x.link.inFlight, x)
	if x.parent != nil {
		x.parent.children = without(x.parent.children, x)
	}
}

// cancelFar tells the handler at the target that nobody waits for its answer any more.
func (x *exchange) cancelFar() {
	if !x.arrived || x.context.err != nil {
		return
	}
	x.context.cancel()
	x.wake()
}

// progressed wakes the handler, which reads the answer to the request that it forwarded.
func (x *exchange) progressed() { x.wake() }

// wake wakes the handler at the target, so that it checks what it waits for.
func (x *exchange) wake() {
	if x.task != nil {
		x.task.Wake()
	}
}

// finished is called when the handler at the target has returned or was unwound.
func (x *exchange) finished() {
	x.task = nil
	x.target.incoming = without(x.target.incoming, x)
	for len(x.children) > 0 { // a handler that was unwound may leave some
		x.children[len(x.children)-1].giveUp()
	}
}

// without removes an exchange. It keeps the order of the others, because the trace depends on it.
func without(all []*exchange, x *exchange) []*exchange {
	if i := slices.Index(all, x); i >= 0 {
		return slices.Delete(all, i, i+1)
	}
	return all
}
