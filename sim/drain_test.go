package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
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
	r := run(t, only(t, proxy.Upstream137()), c, 1)
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

// A stopped server, and what its peers do while it serves on: builtin removes its leases at once,
// the reference keeps them. After the delay its process waits for open watches (here until their
// client gives up), unless a grace period ends them.
func TestWhatHappensWhileAServerDrains(t *testing.T) {
	const delay = 10 * time.Second
	list := workload.Request{Verb: "list", GVR: onlyNew, User: workload.Admin}
	watch := workload.Request{Verb: "watch", GVR: onlyNew, User: workload.Admin, For: 5 * time.Minute}
	for name, c := range map[string]struct {
		how    draining
		status int           // of b's answer, about what only a serves
		least  time.Duration // until a has ended
		most   time.Duration
	}{
		"builtin":                        {draining{}, 404, 30 * time.Second, 40 * time.Second},
		"builtin, with a grace period":   {draining{grace: 3 * time.Second}, 404, delay, delay + 3*time.Second},
		"builtin, without a watch":       {draining{quiet: true}, 404, delay, delay + 2*time.Second},
		"reference":                      {draining{reference: true}, 200, 30 * time.Second, 40 * time.Second},
		"reference, with a grace period": {draining{reference: true, grace: 3 * time.Second}, 200, delay, delay + 3*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			k := three(soak(6*time.Second), scenario.Step{Action: scenario.Stop, Server: "a"}, soak(20*time.Second))
			k.Servers[0].Setup = &scenario.Setup{ShutdownDelay: delay, WatchTermination: c.how.grace}
			k.Requests = []Request{{Step: 1, After: 5 * time.Second, Server: "b", Request: list}, {Step: 1, After: 9 * time.Second, Server: "a", Request: list}}
			if !c.how.quiet {
				k.Requests = append(k.Requests, Request{Step: 1, Server: "a", Request: watch})
			}
			setup := only(t, proxy.Upstream137())
			if c.how.reference {
				setup = only(t, proxy.Reference())
				setup.Reference = true
			}
			r := run(t, setup, k, 1)
			for _, op := range r.History.Operations {
				want := map[string]int{"a": 200, "b": c.status}[op.Server]
				if op.Verb == "list" && op.Status != want {
					t.Errorf("%s answered %d %q, want %d", op.Server, op.Status, op.Failure, want)
				}
			}
			if step := r.History.Steps[1]; step.End-step.Start < c.least || step.End-step.Start > c.most {
				t.Errorf("a had stopped after %s, want %s to %s", step.End-step.Start, c.least, c.most)
			}
			var states []history.State
			for _, l := range r.History.Lifecycle {
				if l.Server == "a" && l.At >= r.History.Steps[0].End {
					states = append(states, l.State)
				}
			}
			if !slices.Equal(states, []history.State{history.StateStopping, history.StateDrained, history.StateStopped}) {
				t.Errorf("recorded %v", states)
			}
		})
	}
}

// A request that is on its way to a server when this stops is answered with 503 and Retry-After.
// Upstream passes this on; the reference asks another server, if there is one.
func TestARequestArrivesAtAServerThatStops(t *testing.T) {
	for name, c := range map[string]struct {
		policy proxy.Policy
		other  string // the release of c
		step   int    // of which the request is sent
		after  time.Duration
		status int
		retry  string
	}{
		"builtin": {proxy.Upstream137(), newer, 2, 4800 * time.Millisecond, 503, "1"},
		// It serves for another second.
		"reference":                {proxy.Reference(), newer, 3, 800 * time.Millisecond, 200, ""},
		"reference, no other peer": {proxy.Reference(), older, 3, 800 * time.Millisecond, 503, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			slow := scenario.Step{Action: scenario.Inject, Label: "slow", Fault: &fault.Fault{Kind: fault.Latency, From: "b", To: "a", Latency: 500 * time.Millisecond}}
			k := three(soak(6*time.Second), slow, soak(5*time.Second), scenario.Step{Action: scenario.Stop, Server: "a"}, soak(20*time.Second))
			k.Servers[2].Version = c.other
			list := workload.Request{Verb: "list", GVR: onlyNew, User: workload.Admin}
			k.Requests = []Request{{Step: c.step, After: c.after, Server: "b", Request: list}}
			s := New(only(t, c.policy))
			defer s.Close()
			r, err := s.Run(k, tape.Of([tape.Streams][]uint32{}), Options{}) // the choices are all 0: the first peer is picked
			if err != nil {
				t.Fatal(err)
			}
			op := r.History.Operations[0]
			if op.Status != c.status || op.RetryAfter != c.retry {
				t.Errorf("%d %q, Retry-After %q; want %d and %q", op.Status, op.Failure, op.RetryAfter, c.status, c.retry)
			}
			if log := r.History.Hops; slices.ContainsFunc(log, func(h history.Hop) bool { return h.Server == "a" }) {
				t.Errorf("logged %v, want nothing in a's log", log)
			}
		})
	}
}

// A failed request makes the reference ask the peer at once, so it learns in two seconds that the
// peer has ended: the regular questions are three seconds apart.
func TestAFailedRequestShowsThatAPeerHasEnded(t *testing.T) {
	for seed := range uint64(5) {
		k := three(soak(6*time.Second), scenario.Step{Action: scenario.Stop, Server: "a"}, soak(20*time.Second))
		list := workload.Request{Verb: "list", GVR: onlyNew, User: workload.Admin}
		for after := 100 * time.Millisecond; after < 4*time.Second; after += 100 * time.Millisecond {
			k.Requests = append(k.Requests, Request{Step: 1, After: after, Server: "b", Request: list})
		}
		r := run(t, only(t, proxy.Reference()), k, seed)
		asked := r.History.Steps[1].Start
		for _, op := range r.History.Operations {
			switch after := op.Start - asked; {
			case after < servesOn && op.Status != 200: // a serves on
				t.Errorf("seed %d: after %s: %d %q, want 200", seed, after, op.Status, op.Failure)
			case after > 2200*time.Millisecond && op.Status != 404: // a has ended after a second, and counts for another half
				t.Errorf("seed %d: after %s: %d %q, want 404", seed, after, op.Status, op.Failure)
			}
		}
	}
}

// draining is how a server drains.
type draining struct {
	reference, quiet bool
	grace            time.Duration
}

// If an administrator withdraws discovery from servers, a released server that starts answers 404
// for what its peers serve, until the right is granted and the server starts again. The reference
// is not concerned.
func TestServersThatMayNotReadDiscovery(t *testing.T) {
	for withdrawn, policy := range map[int]proxy.Policy{404: proxy.Upstream137(), 200: proxy.Reference()} {
		c := three(soak(6*time.Second), scenario.Step{Action: scenario.WithdrawDiscovery}, scenario.Step{Action: scenario.Restart, Server: "b"},
			soak(20*time.Second), scenario.Step{Action: scenario.GrantDiscovery}, scenario.Step{Action: scenario.Restart, Server: "b"},
			soak(20*time.Second))
		list := workload.Request{Verb: "list", GVR: onlyNew, User: workload.Admin}
		for _, at := range []int{0, 3, 6} {
			c.Requests = append(c.Requests, Request{Step: at, After: 5 * time.Second, Server: "b", Request: list})
		}
		var got []int
		for _, op := range run(t, only(t, policy), c, 1).History.Operations {
			got = append(got, op.Status)
		}
		if !slices.Equal(got, []int{200, withdrawn, 200}) {
			t.Errorf("%s: b answered %v, want 200, %d and 200", policy.Name, got, withdrawn)
		}
	}
}

// A node may do what the rules in the asked server's version say.
func TestNodesAreAuthorizedByTheAskedServer(t *testing.T) {
	trust := history.GVR{Group: "certificates.k8s.io", Version: "v1", Resource: "clustertrustbundles"}
	for _, policy := range []proxy.Policy{proxy.Upstream137(), proxy.Reference()} {
		for user, want := range map[string]int{workload.Node: 403, workload.ServiceAccountUser: 200} {
			of := three(soak(20 * time.Second))
			of.Requests = []Request{{After: 10 * time.Second, Server: "b", Request: workload.Request{Verb: "list", GVR: trust, User: user}}}
			setup := only(t, policy)
			setup.Version = recorded.Get
			if got := run(t, setup, of, 1).History.Operations[0].Status; got != want {
				t.Errorf("%s, %s: b answered %d, want %d", policy.Name, user, got, want)
			}
		}
	}
}

// If an administrator deletes the lease of a server, peers do not use the server until it has
// written the lease again.
func TestADeletedLeaseComesBack(t *testing.T) {
	c := three(soak(6*time.Second), scenario.Step{Action: scenario.DeleteLease, Server: "a"}, soak(20*time.Second))
	list := workload.Request{Verb: "list", GVR: onlyNew, User: workload.Admin}
	c.Requests = []Request{{Step: 1, Server: "b", Request: list}, {Step: 2, After: 15 * time.Second, Server: "b", Request: list}}
	r := run(t, only(t, proxy.Upstream137()), c, 1)
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
