package sim

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy"
)

// A search judges a history only if an answer is suspicious. The answers here violate an invariant
// in a way that is easy to overlook.
func TestViolationsAreSuspicious(t *testing.T) {
	pause := scenario.Step{Action: scenario.Pause, Server: "a"}
	kill := scenario.Step{Action: scenario.Kill, Server: "b"}
	lets := only(t, proxy.Reference())
	lets.Defects.Local = func(_ proxy.ServerID, h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/let") {
				w.WriteHeader(http.StatusOK)
				return
			}
			h.ServeHTTP(w, r)
		})
	}
	patch := func(at time.Duration, server, name string) Request {
		return Request{Step: 1, After: at, Server: server, Request: workload.Request{Verb: "patch", GVR: onlyNew, Name: name, User: workload.Reader}}
	}
	waits := three(soak(20*time.Second), pause, soak(37*time.Second), kill, soak(10*time.Second)).asking(2, "b", onlyNew, 6900*time.Millisecond, 1)
	refused := three(soak(20*time.Second), soak(20*time.Second))
	refused.Requests = []Request{patch(time.Second, "a", "x"), patch(8*time.Second, "a", "let"), patch(9*time.Second, "a", "x")}
	for name, c := range map[string]struct {
		setup Setup
		c     *Case
		want  string
	}{
		"a server ends after its client has waited for too long": {only(t, proxy.Upstream137()), waits, "UnavailableOnPeerFailure"},
		"a user who may not write writes once":                   {lets, refused, "AuthorizedAlike"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, c.setup, c.c, 1)
			if v := verdict(r, c.want); v.Outcome != invariant.OutcomeFail {
				t.Errorf("%s: %s (%s), want a violation: %+v", c.want, v.Outcome, v.Reason, r.History.Operations)
			}
			if !r.Suspect {
				t.Errorf("%s is violated, and the run is not suspect: %+v", c.want, r.History.Operations)
			}
		})
	}
	if history.DefaultBounds.Unavailable != 30*time.Second {
		t.Error("the first case kills the server at the wrong time")
	}
}

func TestOnlyWaitingInVainTakesTooLong(t *testing.T) {
	for status, want := range map[int]bool{http.StatusOK: false, http.StatusCreated: false, http.StatusServiceUnavailable: true, 0: true} {
		op := &operation{Operation: history.Operation{Sent: &history.Sent{Verb: "list"}, Received: &history.Received{Status: status}, End: history.Time(40 * time.Second)}}
		if op.overdue() != want {
			t.Errorf("%d after 40s is overdue: %t", status, !want)
		}
	}
}
