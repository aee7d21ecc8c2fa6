package sidecar

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/proxy"
)

// What a record says of requests that were decided before the core saw them.
const decisionRefused = "refused"

// infos finds out what requests are about, as a kube-apiserver does.
var infos = &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// withInfo puts what a request is about into its context. What cannot be understood is left to the core, and in the end to the local server, to
// refuse.
func withInfo(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, err := infos.NewRequestInfo(r); err == nil {
			r = r.WithContext(apirequest.WithRequestInfo(r.Context(), info))
		}
		next.ServeHTTP(w, r)
	})
}

// access is the filter that gives every request an audit ID and writes down what became of it.
type access struct {
	server   string
	log      *accessLog
	next     http.Handler
	observer *accessObserver
	now      func() time.Time
}

func newAccess(server string, log *accessLog, observer *accessObserver, next http.Handler) *access {
	return &access{server: server, log: log, observer: observer, next: next, now: time.Now}
}

func (a *access) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(auditinternal.HeaderAuditID)
	if id == "" {
		id = uuid.NewString()
	}
	r.Header.Set(auditinternal.HeaderAuditID, id) // one, and the same for all who see the request from here on
	request := &accessed{AccessRecord: AccessRecord{AuditID: id, Server: a.server, Start: a.now(), Method: r.Method, Path: r.URL.EscapedPath()}}
	ctx := context.WithValue(r.Context(), accessKey{}, request)
	if info, ok := apirequest.RequestInfoFrom(ctx); ok {
		request.Verb = info.Verb
	}
	// A Connection header that names the audit ID takes it away from the next server, unless it is known apart from the headers.
	ctx = audit.WithAuditContext(ctx)
	audit.WithAuditID(ctx, types.UID(id))
	answer := &answerWriter{ResponseWriter: w, auditID: id}
	defer func() { // also when the handler panics to break the connection off
		a.observer.leave(request)
		request.Status = answer.status
		request.End = a.now()
		a.log.write(&request.AccessRecord)
	}()
	a.next.ServeHTTP(answer, r.WithContext(ctx))
	if answer.status == 0 && !answer.hijacked {
		answer.status = http.StatusOK // what net/http answers for a handler that says nothing
	}
}

type accessKey struct{}

// accessed is a request on its way. It belongs to the goroutine that serves it.
type accessed struct {
	AccessRecord
	at proxy.ServerID // the peer that it is at now, "" for none
}

// accessedFrom returns the request of that context, or one that nobody looks at.
func accessedFrom(ctx context.Context) *accessed {
	if a, ok := ctx.Value(accessKey{}).(*accessed); ok {
		return a
	}
	return &accessed{}
}

// answerWriter remembers the status, and gives answers that are the sidecar's own the audit ID, as a kube-apiserver does with its own.
type answerWriter struct {
	http.ResponseWriter
	auditID  string
	status   int
	hijacked bool
}

func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
		if w.Header().Get(auditinternal.HeaderAuditID) == "" {
			w.Header().Set(auditinternal.HeaderAuditID, w.auditID)
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *answerWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements [http.Flusher].
func (w *answerWriter) Flush() {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	// What cannot be flushed is sent in time all the same.
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack implements [http.Hijacker].
func (w *answerWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.hijacked = true
		if w.status == 0 {
			w.status = http.StatusSwitchingProtocols // what follows is written to the connection itself
		}
	}
	return conn, rw, err
}
