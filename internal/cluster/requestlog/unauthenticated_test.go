package requestlog

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy/sidecar"
)

// TestARealAuditLogTellsOfFailedAuthentication sends requests through kube-apiserver's own filters,
// with the policy that servers use.
func TestARealAuditLogTellsOfFailedAuthentication(t *testing.T) {
	rules, err := policy.LoadPolicyFromBytes([]byte(AuditPolicy))
	if err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	sink, evaluator := auditLog{t, &written}, policy.NewPolicyRuleEvaluator(rules)
	watched := ""
	serve := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		if r.URL.Query().Has("watch") {
			watched = written.String() // the log of a server that is killed now
		}
	}))
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	h := filters.WithAudit(serve, sink, evaluator, func(r *http.Request, _ *request.RequestInfo) bool { return r.URL.Query().Has("watch") })
	h = filters.WithAuthentication(h, authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		name := r.Header.Get("X-Remote-User")
		return &authenticator.Response{User: &user.DefaultInfo{Name: name, UID: "7", Groups: []string{"readers"}}}, name != "", nil
	}), filters.WithFailedAuthenticationAudit(refuse, sink, evaluator), nil, nil)
	h = filters.WithRequestReceivedTimestamp(filters.WithAuditInit(filters.WithRequestInfo(h, workload.RequestInfo)))
	ask := func(id, path, as string) {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Audit-ID", id)
		r.Header.Set("X-Forwarded-For", "198.18.0.7")
		r.Header.Set("X-Remote-User", as)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	ask("lost", "/api/v1/pods", "")
	ask("kept", "/api/v1/pods", "jane")
	ask("watch", "/api/v1/pods?watch=true", "jane")

	begun := time.Now().Add(-time.Hour)
	all, err := readAuditLog(strings.NewReader(written.String()), "a", 1, begun)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 3 {
		t.Fatalf("%d hops, want 3: one a request\n%s", len(all), written.String())
	}
	lost := all[0]
	if lost.Operation != "lost" || lost.Status != 401 || lost.User != "" || lost.Groups != "" || !lost.Rerouted ||
		lost.Unauthenticated != "Authentication failed, no credentials provided" || lost.End <= lost.Start ||
		lost.requested.uri != "/api/v1/pods" {
		t.Errorf("of a request without a user: %+v", lost)
	}
	for _, h := range all[1:] {
		if h.Unauthenticated != "" || h.User != "jane" || h.UID != "7" || h.Groups == "" || h.Status != 200 || h.End <= h.Start {
			t.Errorf("of a request with a user: %+v", h)
		}
	}
	all, err = readAuditLog(strings.NewReader(watched), "a", 1, begun)
	if err != nil || len(all) != 3 {
		t.Fatalf("%v, %+v", err, all)
	}
	if w := all[2]; w.Status != 200 || w.End != w.Start || w.Groups == "" {
		t.Errorf("of a watch on a server that is killed: %+v, want its status and no end", w)
	}
}

// auditLog writes events as k8s.io/apiserver, plugin/pkg/audit/log, does.
type auditLog struct {
	t  *testing.T
	to *bytes.Buffer
}

func (l auditLog) ProcessEvents(events ...*auditinternal.Event) bool {
	for _, e := range events {
		text, err := runtime.Encode(audit.Codecs.LegacyCodec(auditv1.SchemeGroupVersion), e)
		if err != nil {
			l.t.Error(err)
		}
		l.to.Write(text)
	}
	return true
}

func TestHopsTellOfFailedAuthentication(t *testing.T) {
	failed := strings.NewReplacer(`"RequestReceived"`, `"ResponseStarted"`, `{"username":"jane"}`, `{}`, `"code":503`,
		`"message":"Authentication failed, attempted: x509","code":401`)
	refused := func(server string, from, to int, why string) history.Hop {
		h := hop(server, from, to, true)
		h.Status, h.User, h.Unauthenticated = 401, "", why
		return h
	}
	const x509 = "Authentication failed, attempted: x509"
	t.Run("between kube-apiservers", func(t *testing.T) {
		all := accounts(t, "a", "b")
		all[0].Access, all[1].Access = "", ""
		write(t, all[1].Audit, received, complete)
		late := strings.NewReplacer(`"ResponseComplete"`, `"ResponseStarted"`, "10:00:01.000000Z", "10:00:01.001000Z", "10:00:01.250000Z",
			"10:00:01.002000Z")
		write(t, all[0].Audit, late.Replace(failed.Replace(complete)))
		got, err := hopsOf(all, epoch)
		if err != nil {
			t.Fatal(err)
		}
		unknown := refused("a", 1001, 1002, x509)
		unknown.Client = address
		compare(t, []history.Hop{unknown, told("b", 1000, 1250, false, "")}, got)
	})
	t.Run("behind a sidecar that did authenticate", func(t *testing.T) {
		audit := handled{Hop: history.Hop{Operation: "x1", Start: 2 * ms, End: 3 * ms,
			Entry: &history.Entry{Server: "b", Status: 401, Unauthenticated: x509}}}
		got := merge([]handled{{Hop: hop("b", 1, 9, false)}}, []handled{audit})
		if len(got) != 1 || got[0].User != "jane" || got[0].Unauthenticated != x509 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("by a sidecar", func(t *testing.T) {
		log := line(t, 1, 9, func(r *sidecar.AccessRecord) { r.Status, r.User = 401, "" })
		got, err := readAccessLog(strings.NewReader(log), "b", epoch)
		if err != nil || len(got) != 1 || got[0].Unauthenticated == "" {
			t.Errorf("%v, %+v", err, got)
		}
		for _, other := range []func(*sidecar.AccessRecord){
			func(r *sidecar.AccessRecord) { r.Status = 401 },             // the user is known: a peer answered 401
			func(r *sidecar.AccessRecord) { r.Status, r.User = 503, "" }, // the sidecar did not need to know the user
		} {
			got, err := readAccessLog(strings.NewReader(line(t, 1, 9, other)), "b", epoch)
			if err != nil || len(got) != 1 || got[0].Unauthenticated != "" {
				t.Errorf("%v, %+v", err, got)
			}
		}
	})
}
