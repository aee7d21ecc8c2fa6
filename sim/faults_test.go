package sim

import (
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy"
)

// The effect of each kind of fault between b and a on a request that b forwards to a. No other
// server can serve the request.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault   fault.Fault
		policy  proxy.Policy
		status  int
		failure history.Failure
		blocks  bool
	}{
		"cut":                {fault.Fault{Kind: fault.Cut}, proxy.Reference(), 503, "", true},
		"cut, upstream":      {fault.Fault{Kind: fault.Cut}, proxy.Upstream137(), 503, "", true},
		"black hole":         {fault.Fault{Kind: fault.Timeout}, proxy.Reference(), 503, "", true},
		"black hole back":    {fault.Fault{Kind: fault.Timeout, Direction: fault.Down}, proxy.Reference(), 503, "", true},
		"black hole there":   {fault.Fault{Kind: fault.Timeout, Direction: fault.Up}, proxy.Reference(), 503, "", true},
		"slow":               {fault.Fault{Kind: fault.Latency, Latency: time.Second}, proxy.Reference(), 200, "", false},
		"too slow":           {fault.Fault{Kind: fault.Latency, Latency: 20 * time.Second}, proxy.Reference(), 503, "", false},
		"reset before":       {fault.Fault{Kind: fault.Reset, Direction: fault.Down}, proxy.Reference(), 503, "", true},
		"reset on the way":   {fault.Fault{Kind: fault.Reset, Direction: fault.Up}, proxy.Reference(), 503, "", true},
		"cut off headers":    {fault.Fault{Kind: fault.LimitData, Direction: fault.Down, Bytes: 10}, proxy.Reference(), 503, "", false},
		"truncated":          {fault.Fault{Kind: fault.LimitData, Direction: fault.Down, Bytes: headerBytes + 5}, proxy.Reference(), 0, history.FailureReset, false},
		"narrow":             {fault.Fault{Kind: fault.Bandwidth, Rate: 1000}, proxy.Reference(), 200, "", false},
		"in slices":          {fault.Fault{Kind: fault.Slicer, Size: 10, Delay: time.Millisecond}, proxy.Reference(), 200, "", false},
		"slow to close":      {fault.Fault{Kind: fault.SlowClose, Delay: time.Second}, proxy.Reference(), 200, "", false},
		"one way, the other": {fault.Fault{Kind: fault.Cut, From: "a", To: "b"}, proxy.Reference(), 200, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.fault
			if f.From == "" {
				f.From, f.To = "b", "a"
			}
			kase := three(scenario.Step{Action: scenario.Inject, Label: "f", Fault: &f}, soak(time.Minute)).asking(1, "b", onlyNew, time.Second, 1)
			kase.Settled = true
			r := run(t, only(t, c.policy), kase, 1)
			o := r.History.Operations[0]
			if o.Status != c.status || o.Failure != c.failure {
				t.Errorf("answered %d %q after %s (%s), want %d %q", o.Status, o.Failure, o.End-o.Start, o.Message, c.status, c.failure)
			}
			if len(r.History.Faults) != 1 {
				t.Fatalf("%d faults in the history", len(r.History.Faults))
			}
			record := r.History.Faults[0]
			if record.Blocks != c.blocks {
				t.Errorf("record %+v, blocks: want %t", record, c.blocks)
			}
			if f.From == "b" && f.Kind != fault.SlowClose && !record.Effective() {
				t.Errorf("record %+v: the fault affected no request", record)
			}
		})
	}
}

// A run of many hours takes little real time, and a hundred servers still answer correctly.
func TestHoursAndHundreds(t *testing.T) {
	c := three(soak(10*time.Hour)).asking(0, "b", onlyNew, time.Hour, 9)
	for _, o := range run(t, only(t, proxy.Reference()), c, 1).History.Operations {
		if o.Status != 200 {
			t.Errorf("after %s: %d %s", o.Start, o.Status, o.Message)
		}
	}
	many := &Case{Steps: []scenario.Step{soak(20 * time.Second), {Action: scenario.Kill, Server: "a"}, soak(20 * time.Second)}}
	for i := range 100 {
		version := older
		if i < 2 {
			version = newer
		}
		many.Servers = append(many.Servers, scenario.Server{Name: scenario.ServerName(i), Version: version})
	}
	for i := range 100 {
		many.asking(1+i%2, many.Servers[i].Name, onlyNew, time.Duration(1+i%5)*time.Second, 1)
	}
	r := run(t, only(t, proxy.Reference()), many, 1)
	served := 0
	for _, o := range r.History.Operations {
		if o.Status == 200 {
			served++
		} else if o.Server != "a" {
			t.Errorf("%s of %s at %s: %d %q %s", o.Verb, o.Server, o.Start, o.Status, o.Failure, o.Message)
		}
	}
	if served < 99 {
		t.Errorf("%d of 100 requests were served", served)
	}
}

// A killed server must not answer any request.
func TestAKilledServerIsSilent(t *testing.T) {
	c := three(scenario.Step{Action: scenario.Kill, Server: "a"}, soak(5*time.Second)).
		asking(0, "a", onlyNew, time.Nanosecond, 1).asking(1, "a", onlyNew, time.Second, 1)
	c.Settled = true
	r := run(t, only(t, proxy.Reference()), c, 1)
	for _, o := range r.History.Operations {
		if o.Status != 0 || o.Failure != history.FailureRefused && o.Failure != history.FailureReset {
			t.Errorf("a dead server answered %d %q", o.Status, o.Failure)
		}
	}
	if len(r.History.Faults) != 1 || r.History.Faults[0].Evidence.Requests != 2 {
		t.Errorf("faults %+v, want one kill that two requests met", r.History.Faults)
	}
}

// A watch lasts until its time is over, and ends early when its peer dies.
func TestAWatchThroughAPeer(t *testing.T) {
	c := three(soak(20*time.Second), scenario.Step{Action: scenario.Kill, Server: "a"}, soak(10*time.Second))
	c.Settled = true
	c.Requests = []Request{
		{After: time.Second, Server: "b", Request: workload.Request{Verb: "watch", GVR: onlyNew, For: 5 * time.Second}},
		{After: 15 * time.Second, Server: "b", Request: workload.Request{Verb: "watch", GVR: onlyNew, For: 20 * time.Second}},
	}
	r := run(t, only(t, proxy.Reference()), c, 1)
	whole, broken := r.History.Operations[0], r.History.Operations[1]
	if whole.Failure != "" || whole.Events < 4 || whole.Events > 6 {
		t.Errorf("a watch of five seconds: %d events, %q", whole.Events, whole.Failure)
	}
	if broken.Failure != history.FailureReset || broken.Events < 3 || broken.End-broken.Start > 6*time.Second {
		t.Errorf("a watch whose peer dies after five seconds: %d events, %q after %s", broken.Events, broken.Failure, broken.End-broken.Start)
	}
	if !r.Reached.Has(ReachedWatchBroken) {
		t.Error("no state records that a watch broke off")
	}
}

// A reset that is healed before its time loses nothing, as with toxiproxy. The request is only
// delayed.
func TestAResetThatIsHealedInTime(t *testing.T) {
	for _, direction := range []fault.Direction{fault.Up, fault.Down} {
		for healedAfter, want := range map[time.Duration]struct {
			status int
			bit    bool
		}{2 * time.Second: {200, false}, 6 * time.Second: {503, true}} {
			f := fault.Fault{Kind: fault.Reset, From: "b", To: "a", Direction: direction, After: 5 * time.Second}
			c := three(scenario.Step{Action: scenario.Inject, Label: "f", Fault: &f}, soak(healedAfter), scenario.Step{Action: scenario.Heal, Label: "f"}, soak(time.Minute)).
				asking(1, "b", onlyNew, 0, 1)
			c.Settled = true
			r := run(t, only(t, proxy.Reference()), c, 1)
			o := r.History.Operations[0]
			if o.Status != want.status || r.History.Faults[0].Effective() != want.bit {
				t.Errorf("%s, healed after %s: answered %d after %s, %+v; want %d, and that it affected the request: %t", direction, healedAfter, o.Status, o.End-o.Start,
					r.History.Faults[0], want.status, want.bit)
			}
			if want.status == 200 && o.End-o.Start < healedAfter {
				t.Errorf("%s: answered after %s, before the fault was healed", direction, o.End-o.Start)
			}
		}
	}
}

// If a process is stopped while it starts, it must leave nothing behind that makes other servers
// believe that it lives.
func TestStoppedWhileItStarts(t *testing.T) {
	nobodys := history.GVR{Group: "nobody.example.com", Version: "v1", Resource: "ghosts"}
	stopping := scenario.Step{Action: scenario.Stop, Server: "c"}
	for seed := range uint64(20) { // the duration of the start depends on the seed
		c := three(scenario.Step{Action: scenario.Kill, Server: "c"}, cutting("c", "etcd"), scenario.Step{Action: scenario.Start, Server: "c"},
			scenario.Step{Action: scenario.Heal, Label: "cetcd"}, soak(time.Duration(seed+1)*100*time.Millisecond), stopping, soak(30*time.Second)).
			asking(6, "a", nobodys, 10*time.Second, 2)
		for i := range c.Servers {
			c.Servers[i].Version = newer // this version removes its identity lease
		}
		r := run(t, only(t, proxy.Reference()), c, seed)
		for _, o := range r.History.Operations {
			if o.Status != 404 {
				t.Errorf("seed %d: answered %d at %s (%s), want 404", seed, o.Status, o.Start, o.Message)
			}
		}
	}
}

// For each request, upstream reads the address of the peer from etcd, and the request hangs until
// etcd answers. (Observed on real processes, in etcd-cut-off-one-server.) The reference keeps the
// addresses of its peers in memory.
func TestWithoutEtcdUpstreamFindsNoPeer(t *testing.T) {
	for policy, hangs := range map[string]bool{"upstream-1.37": true, "alpha-1.28": true, "reference": false} {
		p, err := proxy.PresetNamed(policy)
		if err != nil {
			t.Fatal(err)
		}
		cut := scenario.Step{Action: scenario.Inject, Label: "etcd", Fault: &fault.Fault{Kind: fault.Cut, From: "b", To: fault.Etcd}}
		c := three(soak(time.Second), cut, soak(10*time.Second), scenario.Step{Action: scenario.Heal, Label: "etcd"}, soak(20*time.Second)).
			asking(2, "b", onlyNew, time.Second, 1)
		c.Settled = true
		o := run(t, only(t, p), c, 1).History.Operations[0]
		if took := o.End - o.Start; o.Status != 200 || hangs != (took >= 9*time.Second) {
			t.Errorf("%s: %d %s (%s) after %s; hangs until etcd is back: want %t", policy, o.Status, o.Failure, o.Message, took, hangs)
		}
	}
}
