package sim

import (
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim/tape"
)

// stopped runs a case in which b is stopped and asked 3 s later, and returns that operation.
func stopped(t *testing.T, setup *scenario.Setup) history.Operation {
	t.Helper()
	c := three(soak(6*time.Second), scenario.Step{Action: scenario.Stop, Server: "b"}, soak(20*time.Second))
	c.Servers[1].Setup = setup
	c.Requests = []Request{{Step: 1, After: 3 * time.Second, Server: "b", Request: workload.Request{Verb: "list", GVR: onlyNew, User: workload.Admin}}}
	s := New(only(t, proxy.Upstream137()))
	defer s.Close()
	r, err := s.Run(c, tape.Seeded(1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.History.Operations); n != 1 {
		t.Fatalf("%d operations, want one", n)
	}
	return r.History.Operations[0]
}

// A server with a shutdown delay goes on to serve after it has removed its leases.
func TestAServerServesDuringItsShutdownDelay(t *testing.T) {
	if op := stopped(t, nil); op.Failure != history.FailureRefused {
		t.Errorf("without a delay: %d %q, want the connection refused", op.Status, op.Failure)
	}
	if op := stopped(t, &scenario.Setup{ShutdownDelay: scenario.LongDrain}); op.Failure != history.FailureNone {
		t.Errorf("with a delay: %d %q, want an answer", op.Status, op.Failure)
	}
	if op := stopped(t, &scenario.Setup{ShutdownDelay: time.Second}); op.Failure != history.FailureRefused {
		t.Errorf("after a short delay: %d %q, want the connection refused", op.Status, op.Failure)
	}
}

// If an administrator deletes the lease of a server, peers do not use the server until it has
// written the lease again.
func TestADeletedLeaseComesBack(t *testing.T) {
	c := three(soak(6*time.Second), scenario.Step{Action: scenario.DeleteLease, Server: "a"}, soak(20*time.Second))
	list := workload.Request{Verb: "list", GVR: onlyNew, User: workload.Admin}
	c.Requests = []Request{{Step: 1, Server: "b", Request: list}, {Step: 2, After: 15 * time.Second, Server: "b", Request: list}}
	s := New(only(t, proxy.Upstream137()))
	defer s.Close()
	r, err := s.Run(c, tape.Seeded(1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range r.History.Operations {
		if op.Status != 200 {
			t.Errorf("at %s b answered %d, want 200: a serves it", op.Start, op.Status)
		}
	}
	if effect := r.History.Steps[1].Effect; effect == "" {
		t.Error("the step does not record its effect")
	}
	if r.History.Steps[1].Error != "" {
		t.Error(r.History.Steps[1].Error)
	}
}
