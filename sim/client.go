package sim

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/internal/answer"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim/vtime"
)

// patience is how long a client waits for an answer, as on real servers.
const patience = workload.Timeout

// Client is the client of operations whose request names no client.
const Client = "sim"

// template is a request without the fields that differ each time. It is shared and immutable.
type template struct {
	request *http.Request
	url     *url.URL
	values  context.Context
	payload []byte
	hash    uint64

	begins history.Operation // the resource and other fixed fields
}

// maxTemplates is the maximum size of the template cache of a simulator. The cache needs a bound
// because each request may have a new name.
const maxTemplates = 8192

func (s *Simulator) templateOf(r *workload.Request) *template {
	key := *r
	key.User, key.Cached, key.Then, key.Pick, key.Before, key.Slow = "", "", "", 0, 0, false // the server does not see these
	if t, ok := s.templates[key]; ok {
		return t
	}
	if len(s.templates) >= maxTemplates {
		clear(s.templates)
	}
	t := newTemplate(r)
	s.templates[key] = t
	return t
}

func newTemplate(r *workload.Request) *template {
	t := &template{url: r.URL(), payload: r.Payload()}
	header := r.Header()
	header["User-Agent"] = []string{"skewproof-sim"}
	if header["Accept"] == nil {
		header["Accept"] = jsonHeader
	}
	maps.Copy(header, r.ForgedHeader())
	t.request = &http.Request{Method: r.Method(), URL: t.url, Header: header, Host: "kubernetes", ProtoMajor: 2, RemoteAddr: "client:1"}
	if r.HTTP1 {
		t.request.ProtoMajor, t.request.ProtoMinor = 1, 1
	}
	if r.Upgrade {
		maps.Copy(header, upgradeHeader(r.Protocol))
		t.request.ProtoMajor, t.request.ProtoMinor = 1, 1
	}
	info, err := workload.RequestInfo.NewRequestInfo(t.request)
	if err != nil {
		info = &apirequest.RequestInfo{Path: t.url.Path}
	}
	t.values = apirequest.WithRequestInfo(context.Background(), info)
	t.begins = workload.Describe(t.request)
	t.begins.Client, t.begins.Rerouted = cmp.Or(r.Sender(), Client), r.Forged != "" && proxy.SaysRerouted(header)
	t.hash = hashString(r.Verb + " " + t.begins.Path)
	return t
}

// operation is one request of a client that is in progress.
type operation struct {
	history.Operation // its parts are the two below
	sent              history.Sent
	received          history.Received

	s        *Simulator
	template *template
	x        *exchange
	patience vtime.Timer
	lasts    time.Duration // the length of a watch
	asked    Request
	at       int // the server that receives the request
	hops     int // number of times that the request was forwarded
}

// ask sends one request of a client.
func (s *Simulator) ask(r *Request, purpose history.Purpose) {
	op := s.newOperation()
	op.asked = *r
	s.launch(op, purpose)
}

// launch sends the request of an operation.
func (s *Simulator) launch(op *operation, purpose history.Purpose) {
	r := &op.asked
	op.at = s.byName[r.Server]
	if r.Cached != "" {
		r.Request = s.session(r).Resolve(r.Request)
	}
	op.template, op.lasts = s.templateOf(&r.Request), max(time.Second, r.For.Truncate(time.Second))
	op.sent = *op.template.begins.Sent
	op.ID, op.Purpose, op.User, op.Server, op.Start = s.operationID(), purpose, cmp.Or(r.User, workload.Admin), r.Server, s.loop.Now()
	if r.Forged != "" {
		s.reached.note(ReachedForged)
	}
	s.outstanding++
	s.trace.add(s.loop.Now(), eventAsk, op.at, 0, op.template.hash)
	op.x = s.send(s.link(s.clientEnd(), op.at), op, nil, op.template.request, op.template.payload, op)
	op.patience.Set(&s.loop, patience, nil, (*outOfPatience)(op))
}

// outOfPatience is the event that a client stops waiting.
type outOfPatience operation

func (o *outOfPatience) Happen() {
	o.x.giveUp()
	o.s.completed((*operation)(o), history.FailureTimeout)
}

// progressed is called when a piece of the answer has arrived.
func (op *operation) progressed() {
	s := op.s
	switch x := op.x; {
	case x == nil: // refused before send returned: progressed is called again
	case errors.Is(x.err, errRefused):
		s.completed(op, history.FailureRefused)
	case errors.Is(x.err, errDistrusted):
		s.completed(op, history.FailureTLS)
	case x.err != nil:
		s.completed(op, history.FailureReset)
	case x.ended:
		x.drop()
		s.completed(op, history.FailureNone)
	}
}

// completed records the outcome of a request.
func (s *Simulator) completed(op *operation, failure history.Failure) {
	op.patience.Stop()
	x := op.x
	op.End, op.Failure, op.Status = s.loop.Now(), failure, x.status
	if failure != history.FailureNone {
		op.Error = string(failure)
	}
	if x.status != 0 {
		s.read(op)
	}
	s.follow(op)
	s.outstanding--
	s.asked[op.at]++
	s.trace.add(op.End, eventAnswered, op.at, x.status, uint64(len(op.Failure)))
	s.history.Operations = append(s.history.Operations, s.sharing.Operation(op.Operation))
	s.seen(op)
	s.counts.completed(op)
}

// read classifies the answer.
func (s *Simulator) read(op *operation) {
	x := op.x
	kind := x.header.Get("Content-Type")
	op.RetryAfter = x.header.Get("Retry-After")
	if op.Accept != "" && kind != "" {
		op.MediaType = answer.MediaType(kind)
	}
	if op.Failure == history.FailureNone && op.Verb != "watch" {
		op.Content = s.content(kind, x.body)
	}
	switch {
	case x.status >= http.StatusBadRequest && op.Failure != history.FailureNone: // a client reads nothing of an incomplete body
	case x.status >= http.StatusBadRequest:
		var status *metav1.Status
		op.Body, status = answer.Inspect(answer.AsJSON(answer.MediaType(kind), x.body))
		switch {
		case status != nil:
			op.Reason, op.Message = string(status.Reason), status.Message
		case op.Body == history.BodyText:
			op.Message = answer.Excerpt(x.body)
		}
		if x.status == http.StatusNotFound {
			op.Missing = answer.ClassifyMissing(status)
		}
	case op.Verb == history.VerbDiscovery, op.Verb == history.VerbNoPeer:
		op.Body, op.ETag = history.BodyDiscovery, x.header.Get("ETag")
		if op.Failure == history.FailureNone && x.status == http.StatusOK {
			op.Document = s.document(x.body)
		}
	case op.Verb == history.VerbLegacy:
		op.Body = history.BodyDiscovery
		if op.Failure != history.FailureNone || x.status != http.StatusOK {
			break
		}
		d, err := answer.ParseLegacy(x.body)
		if err != nil {
			op.Message = err.Error() // as the load records it
			break
		}
		op.Document, s.history.Documents[d.Hash] = d.Hash, d
	case op.Verb == "watch":
		op.Body, op.Events = history.BodyEvents, bytes.Count(x.body, []byte{'\n'})
		if x.status == http.StatusSwitchingProtocols && op.Failure == history.FailureNone && !bytes.HasSuffix(x.body, []byte(closing)) {
			op.Failure, op.Error = history.FailureReset, string(history.FailureReset) // no closing message was sent
		}
	case op.Verb == "list":
		op.Body = history.BodyList
	case op.Verb == history.VerbTable:
		op.Body = history.BodyTable
	case op.asked.Path != "": // the document of a group, or of one of its versions
		op.Body = history.BodyDiscovery
	default:
		op.Body = history.BodyObject
		if op.asked.Compare != "" && op.Failure == history.FailureNone {
			op.Object, op.Headers = answer.Object(x.body, op.Verb), answer.Headers(x.header)
		}
	}
}

// content says whether a body is whole. A body that was parsed as a document is whole.
func (s *Simulator) content(kind string, body []byte) history.Content {
	if _, ok := s.parsed[string(body)]; ok {
		return history.ContentWhole
	}
	return answer.ContentOf(kind, body)
}

// document records a discovery document that a client received, and returns its hash.
func (s *Simulator) document(body []byte) string {
	d, ok := s.parse(body)
	if !ok {
		return ""
	}
	s.history.Documents[d.Hash] = d
	return d.Hash
}

// parse parses a discovery document, and reports whether the body is one.
func (s *Simulator) parse(body []byte) (history.Document, bool) {
	d, ok := s.parsed[string(body)]
	if !ok {
		var err error
		if d, err = answer.ParseDiscovery(body); err != nil {
			return history.Document{}, false
		}
		if len(s.parsed) >= maxParsed {
			clear(s.parsed)
		}
		s.parsed[string(body)] = d
	}
	return d, true
}

// maxParsed is the maximum number of parsed documents that a simulator remembers.
const maxParsed = 512
