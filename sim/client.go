package sim

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/traffic"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim/recorded"
	"github.com/skewproof/skewproof/sim/vtime"
)

// patience is how long a client waits for an answer.
const patience = traffic.DefaultTimeout

// The clients of operations. A request with a forged hop header has one of its own, so that what becomes of it can be told apart.
const (
	Client = "sim"
	Forger = "forger"
)

// methods are the HTTP methods of the verbs that a client can use.
var methods = map[string]string{
	"get": http.MethodGet, "list": http.MethodGet, history.VerbTable: http.MethodGet, "watch": http.MethodGet,
	"create": http.MethodPost, "update": http.MethodPut, "patch": http.MethodPatch,
	"delete": http.MethodDelete, "deletecollection": http.MethodDelete, history.VerbDiscovery: http.MethodGet, history.VerbNoPeer: http.MethodGet,
	history.VerbLegacy: http.MethodGet,
}

var requestInfo = &apirequest.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// template is a request as its client sends it, without what differs each time. It is shared, and must not be changed but for what it remembers.
type template struct {
	request *http.Request
	url     *url.URL
	values  context.Context
	payload []byte
	path    string // with the query
	hash    uint64
	served  []servedBy // by the versions that were asked about
}

// servedBy is whether a version serves what a template is about, whatever extensions there are.
type servedBy struct {
	version *recorded.Version
	is      bool
}

// servedBy reports whether a version serves what the template is about.
func (t *template) servedBy(s *Simulator, v *recorded.Version, k resourceKey) bool {
	for _, known := range t.served {
		if known.version == v {
			return known.is
		}
	}
	_, is := s.index(v)[k]
	t.served = append(t.served, servedBy{v, is})
	return is
}

// templateKey is what a template is made from.
type templateKey struct {
	verb, subresource, name, path string
	gvr                           history.GVR
	forged, denied, upgrade       bool
	seconds                       int

	accept, contentType, ifNoneMatch, query string
}

// maxTemplates bounds the cache of a simulator: names may be new with every request.
const maxTemplates = 8192

func (s *Simulator) templateOf(r *Request) *template {
	key := templateKey{r.Verb, r.Subresource, r.Name, r.Path, r.GVR, r.Forged, r.Denied, r.Upgrade, int(r.For / time.Second), r.Accept, r.ContentType, r.IfNoneMatch, r.Query}
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

func newTemplate(r *Request) *template {
	t := &template{url: &url.URL{Path: cmp.Or(r.Path, pathOf(r))}}
	header := http.Header{"Accept": {acceptOf(r)}, "User-Agent": {"skewproof-sim"}}
	if r.IfNoneMatch != "" {
		header["If-None-Match"] = []string{r.IfNoneMatch}
	}
	t.url.RawQuery = r.Query
	switch r.Verb {
	case "watch":
		t.url.RawQuery = "timeoutSeconds=" + strconv.Itoa(max(1, int(r.For/time.Second))) + "&watch=true"
	case "create", "update":
		t.payload = []byte(`{"metadata":{"name":"` + r.Name + `"}}`)
		header["Content-Type"] = []string{"application/json"}
	case "patch":
		t.payload = []byte(`{}`)
		header["Content-Type"] = []string{cmp.Or(r.ContentType, "application/merge-patch+json")}
	}
	if r.Forged {
		header[proxy.HopHeader] = []string{"true"}
	}
	if r.Denied {
		header[proxy.HopHeader] = append([]string{"false"}, header[proxy.HopHeader]...)
	}
	t.request = &http.Request{Method: methods[r.Verb], URL: t.url, Header: header, Host: "kubernetes", ProtoMajor: 2, RemoteAddr: "client:1"}
	if r.Upgrade {
		maps.Copy(header, socketHeader)
		t.request.ProtoMajor, t.request.ProtoMinor = 1, 1
	}
	info, err := requestInfo.NewRequestInfo(t.request)
	if err != nil {
		info = &apirequest.RequestInfo{Path: t.url.Path}
	}
	t.values = apirequest.WithRequestInfo(context.Background(), info)
	t.path = t.url.RequestURI()
	t.hash = hashString(r.Verb + " " + t.path)
	return t
}

// pathOf is where a resource is asked for. All objects of the simulator are without a namespace, so that one path fits all.
func pathOf(r *Request) string {
	var b strings.Builder
	if r.GVR.Group == "" {
		b.WriteString("/api/")
	} else {
		b.WriteString("/apis/" + r.GVR.Group + "/")
	}
	b.WriteString(r.GVR.Version + "/" + r.GVR.Resource)
	if r.Verb == "get" || r.Verb == "update" || r.Verb == "patch" || r.Verb == "delete" || r.Subresource != "" {
		b.WriteString("/" + cmp.Or(r.Name, "x"))
	}
	if r.Subresource != "" {
		b.WriteString("/" + r.Subresource)
	}
	return b.String()
}

// operation is one request of a client, under way.
type operation struct {
	history.Operation
	s        *Simulator
	template *template
	x        *exchange
	patience vtime.Timer
	lasts    time.Duration // of a watch
	asked    Request
	at       int // the server that is asked
	situation
}

// ask sends one request of a client.
func (s *Simulator) ask(r *Request, purpose history.Purpose) {
	op := s.newOperation()
	op.asked = *r
	s.launch(op, purpose)
}

// launch sends what is asked in an operation.
func (s *Simulator) launch(op *operation, purpose history.Purpose) {
	r := &op.asked
	op.at = s.byName[r.Server]
	op.template, op.lasts = s.templateOf(r), max(time.Second, r.For.Truncate(time.Second))
	op.Operation = history.Operation{
		ID: s.operationID(), Purpose: purpose, Client: Client, User: cmp.Or(r.User, "admin"), Server: r.Server, Verb: r.Verb,
		GVR: r.GVR, Subresource: r.Subresource, Name: r.Name, Path: op.template.path, Start: s.loop.Now(), Accept: r.Accept,
	}
	if r.Upgrade {
		op.Client = traffic.ClientSocket
	}
	if r.Forged || r.Denied {
		op.Client, op.Rerouted = Forger, r.Forged
		s.reached.note(ReachedForged)
	}
	s.situate(op)
	s.outstanding++
	s.trace.add(s.loop.Now(), eventAsk, op.at, 0, op.template.hash)
	op.x = s.send(s.link(s.clientEnd(), op.at), op, nil, op.template.request, op.template.payload, op)
	op.patience.Set(&s.loop, patience, nil, (*outOfPatience)(op))
}

// outOfPatience is that a client waits no longer.
type outOfPatience operation

func (o *outOfPatience) Happen() {
	o.x.giveUp()
	o.s.completed((*operation)(o), history.FailureTimeout)
}

// progressed is called when something of the answer has come.
func (op *operation) progressed() {
	s := op.s
	switch x := op.x; {
	case x == nil: // refused before send returned: it is called again
	case x.err == errRefused:
		s.completed(op, history.FailureRefused)
	case x.err == errDistrusted:
		s.completed(op, history.FailureTLS)
	case x.err != nil:
		s.completed(op, history.FailureReset)
	case x.ended:
		x.drop()
		s.completed(op, history.FailureNone)
	}
}

// completed writes down what became of a request.
func (s *Simulator) completed(op *operation, failure history.Failure) {
	op.patience.Stop()
	x := op.x
	op.End, op.Failure, op.Status = s.loop.Now(), failure, x.status
	if failure != history.FailureNone {
		op.Error = string(failure)
	}
	if x.status != 0 {
		s.read(op)
		s.noteEdition(op)
		s.turnPage(op, op.asked)
	}
	s.outstanding--
	s.asked[op.at]++
	s.trace.add(op.End, eventAnswered, op.at, x.status, uint64(len(op.Failure)))
	s.history.Operations = append(s.history.Operations, op.Operation)
	s.seen(op)
	s.doubt(op)
}

// read says what kind of answer it was.
func (s *Simulator) read(op *operation) {
	x := op.x
	kind := x.header.Get("Content-Type")
	op.RetryAfter = x.header.Get("Retry-After")
	if op.Accept != "" && kind != "" {
		op.MediaType, _, _ = strings.Cut(kind, ";")
	}
	if op.Failure == history.FailureNone && op.Verb != "watch" {
		op.Content = s.content(kind, x.body)
	}
	switch {
	case x.status >= http.StatusBadRequest && (strings.HasPrefix(kind, "application/json") || strings.HasPrefix(kind, "application/yaml")):
		op.Body = history.BodyStatus
		var status metav1.Status
		media, _, _ := strings.Cut(kind, ";")
		if json.Unmarshal(traffic.AsJSON(media, x.body), &status) != nil {
			op.Body = history.BodyText
			break
		}
		op.Reason, op.Message = string(status.Reason), status.Message
		if x.status == http.StatusNotFound {
			op.Missing = traffic.ClassifyMissing(&status)
		}
	case x.status >= http.StatusBadRequest:
		op.Body, op.Message = history.BodyText, string(x.body[:min(len(x.body), 200)])
		if x.status == http.StatusNotFound {
			op.Missing = history.MissingResource
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
		d, err := traffic.ParseLegacy(x.body)
		if err != nil {
			op.Message = err.Error() // as the load notes it
			break
		}
		op.Document, s.history.Documents[d.Hash] = d.Hash, d
	case op.Verb == "watch":
		op.Body, op.Events = history.BodyEvents, bytes.Count(x.body, []byte{'\n'})
		if x.status == http.StatusSwitchingProtocols && op.Failure == history.FailureNone && !bytes.HasSuffix(x.body, []byte(closing)) {
			op.Failure, op.Error = history.FailureReset, string(history.FailureReset) // it ended without a word
		}
	case op.Verb == "list":
		op.Body = history.BodyList
	case op.Verb == history.VerbTable:
		op.Body = history.BodyTable
	default:
		op.Body = history.BodyObject
	}
}

// content says whether a body is whole. What was read as a document is.
func (s *Simulator) content(kind string, body []byte) history.Content {
	if _, ok := s.parsed[string(body)]; ok {
		return history.ContentWhole
	}
	return traffic.ContentOf(kind, body)
}

// document notes a discovery document that a client was given, and returns its hash.
func (s *Simulator) document(body []byte) string {
	d, ok := s.parse(body)
	if !ok {
		return ""
	}
	s.history.Documents[d.Hash] = d
	return d.Hash
}

// parse reads a discovery document, and reports whether it is one.
func (s *Simulator) parse(body []byte) (history.Document, bool) {
	d, ok := s.parsed[string(body)]
	if !ok {
		var err error
		if d, err = traffic.ParseDiscovery(body); err != nil {
			return history.Document{}, false
		}
		if len(s.parsed) >= maxParsed {
			clear(s.parsed)
		}
		s.parsed[string(body)] = d
	}
	return d, true
}

// maxParsed bounds the documents that a simulator remembers having read.
const maxParsed = 512
