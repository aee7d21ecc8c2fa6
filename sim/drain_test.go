package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim/recorded"
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

// If an administrator withdraws discovery from servers, a released server that starts answers 404
// for what its peers serve, until the right is granted and the server starts again. A sidecar reads
// discovery with an identity of its own.
func TestServersThatMayNotReadDiscovery(t *testing.T) {
	for _, sidecar := range []bool{false, true} {
		c := three(soak(6*time.Second), scenario.Step{Action: scenario.WithdrawDiscovery}, scenario.Step{Action: scenario.Restart, Server: "b"},
			soak(20*time.Second), scenario.Step{Action: scenario.GrantDiscovery}, scenario.Step{Action: scenario.Restart, Server: "b"},
			soak(20*time.Second))
		list := workload.Request{Verb: "list", GVR: onlyNew, User: workload.Admin}
		for _, at := range []int{0, 3, 6} {
			c.Requests = append(c.Requests, Request{Step: at, After: 5 * time.Second, Server: "b", Request: list})
		}
		setup := only(t, proxy.Upstream137())
		setup.Sidecar = sidecar
		s := New(setup)
		r, err := s.Run(c, tape.Seeded(1), Options{})
		if err != nil {
			t.Fatal(err)
		}
		withdrawn := map[bool]int{false: 404, true: 200}[sidecar]
		var got []int
		for _, op := range r.History.Operations {
			got = append(got, op.Status)
		}
		if !slices.Equal(got, []int{200, withdrawn, 200}) {
			t.Errorf("sidecar %t: b answered %v, want 200, %d and 200", sidecar, got, withdrawn)
		}
		s.Close()
	}
}

// A node may do what the rules in the asked server's version say. A sidecar passes its request on
// before anything is authorized.
func TestNodesAreAuthorizedByTheAskedServer(t *testing.T) {
	trust := history.GVR{Group: "certificates.k8s.io", Version: "v1", Resource: "clustertrustbundles"}
	for _, c := range []struct {
		user    string
		sidecar bool
		want    int
	}{{workload.Node, false, 403}, {workload.Node, true, 200}, {workload.ServiceAccountUser, false, 200}} {
		of := three(soak(20 * time.Second))
		of.Requests = []Request{{After: 10 * time.Second, Server: "b", Request: workload.Request{Verb: "list", GVR: trust, User: c.user}}}
		setup := only(t, proxy.Upstream137())
		setup.Sidecar, setup.Version = c.sidecar, recorded.Get
		s := New(setup)
		r, err := s.Run(of, tape.Seeded(1), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.History.Operations[0].Status; got != c.want {
			t.Errorf("%s, sidecar %t: b answered %d, want %d", c.user, c.sidecar, got, c.want)
		}
		s.Close()
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
