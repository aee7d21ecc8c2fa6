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

// decisionRefused is the Decision of a request whose caller could not be authenticated.
const decisionRefused = "refused"

var infos = &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// withInfo adds the RequestInfo to the context of a request. If a request cannot be parsed, it
// passes without a RequestInfo: the local server refuses it.
func withInfo(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, err := infos.NewRequestInfo(r); err == nil {
			r = r.WithContext(apirequest.WithRequestInfo(r.Context(), info))
		}
		next.ServeHTTP(w, r)
	})
}

// access gives every request an audit ID and writes its access record.
type access struct {
	server   string // the identity of the local kube-apiserver
	log      *accessLog
	observer *accessObserver
	next     http.Handler
}

func (a *access) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(auditinternal.HeaderAuditID)
	if id == "" {
		id = uuid.NewString()
	}
	r.Header.Set(auditinternal.HeaderAuditID, id) // exactly one, even if the client sent several
	request := &accessed{AccessRecord: AccessRecord{AuditID: id, Server: a.server, Start: time.Now(), Method: r.Method,
		Path: r.URL.EscapedPath()}}
	ctx := context.WithValue(r.Context(), accessKey{}, request)
	if info, ok := apirequest.RequestInfoFrom(ctx); ok {
		request.Verb = info.Verb
	}
	// The context has the audit ID too, because a Connection header that names Audit-Id would
	// remove the header.
	ctx = audit.WithAuditContext(ctx)
	audit.WithAuditID(ctx, types.UID(id))
	answer := &answerWriter{ResponseWriter: w, auditID: id, refused: func() {
		if c := request.caller; c != nil && c.own() && !c.trusted {
			closeConnectionAfter(w, r, request.FromPeer)
		}
	}}
	defer func() { // this also runs when the handler panics to abort the connection
		a.observer.leave(request)
		if a.log != nil && request.caller != nil { // the name may have to be waited for
			request.User = request.caller.name(r.Context())
		}
		request.Status = answer.status
		request.End = time.Now()
		a.log.write(&request.AccessRecord)
	}()
	a.next.ServeHTTP(answer, r.WithContext(ctx))
	if answer.status == 0 && !answer.hijacked {
		answer.status = http.StatusOK // net/http's answer if the handler writes nothing
	}
}

type accessKey struct{}

// accessed is a request in progress. Only the goroutine that serves it uses it.
type accessed struct {
	AccessRecord
	caller *caller        // nil if it could not be authenticated
	at     proxy.ServerID // the peer that has the request now, "" if no peer has it
}

// accessedFrom returns the request of the context. If there is none, it returns one that is not
// logged.
func accessedFrom(ctx context.Context) *accessed {
	if a, ok := ctx.Value(accessKey{}).(*accessed); ok {
		return a
	}
	return &accessed{}
}

// cacheControl is the value that kube-apiservers set on every answer that must not be cached
// (k8s.io/apiserver, WithCacheControl).
const cacheControl = "no-cache, private"

// answerWriter stores the status. It adds the audit ID and Cache-Control to the answers that the
// sidecar itself makes.
type answerWriter struct {
	http.ResponseWriter
	auditID  string
	refused  func() // called before a 401 is sent
	status   int
	hijacked bool
}

func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
		if w.Header().Get(auditinternal.HeaderAuditID) == "" {
			w.Header().Set(auditinternal.HeaderAuditID, w.auditID)
		}
		if len(w.Header()["Cache-Control"]) == 0 && status != http.StatusSwitchingProtocols {
			w.Header()["Cache-Control"] = []string{cacheControl}
		}
		if status == http.StatusUnauthorized {
			w.refused()
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

func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *answerWriter) Flush() {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush() // without it, net/http flushes later
}

func (w *answerWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.hijacked = true
		if w.status == 0 {
			w.status = http.StatusSwitchingProtocols // the handler writes to the connection directly
		}
	}
	return conn, rw, err
}
