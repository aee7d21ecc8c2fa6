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
	all, err := readAuditLog(strings.NewReader(written.String()), "a", begun)
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
	all, err = readAuditLog(strings.NewReader(watched), "a", begun)
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
	all := accounts(t, "a", "b")
	write(t, all[1].Audit, received, complete)
	late := strings.NewReplacer(`"ResponseComplete"`, `"ResponseStarted"`, "10:00:01.000000Z", "10:00:01.001000Z", "10:00:01.250000Z",
		"10:00:01.002000Z")
	write(t, all[0].Audit, late.Replace(failed.Replace(complete)))
	got, err := hopsOf(all, epoch)
	if err != nil {
		t.Fatal(err)
	}
	unknown := hop("a", 1001, 1002, true)
	unknown.Status, unknown.User, unknown.Unauthenticated, unknown.Client = 401, "", "Authentication failed, attempted: x509", address
	compare(t, []history.Hop{unknown, told("b", 1000, 1250, false, "")}, got)
}
