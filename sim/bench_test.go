package sim

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim/tape"
)

// BenchmarkSchedule runs one schedule of three servers and twenty requests, seven of which are
// forwarded. Two links have faults, which are healed. In one variant a server is restarted instead
// of the second fault. Each CPU has its own simulator, so -cpu 1,2 shows the gain from a second
// CPU.
func BenchmarkSchedule(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(1600)) // as in the searches of the command
	slow := scenario.Step{Action: scenario.Inject, Label: "slow", Fault: &fault.Fault{Kind: fault.Latency, From: "c", To: "a", Latency: 50 * time.Millisecond}}
	heal := func(label string) scenario.Step { return scenario.Step{Action: scenario.Heal, Label: label} }
	for name, steps := range map[string][]scenario.Step{
		"links":   {cutting("b", "a"), slow, soak(5 * time.Second), heal("ba"), heal("slow"), soak(5 * time.Second)},
		"restart": {cutting("b", "a"), soak(5 * time.Second), {Action: scenario.Restart, Server: "c"}, heal("ba"), soak(5 * time.Second)},
	} {
		for _, p := range []proxy.Policy{proxy.Reference(), proxy.Upstream137()} {
			b.Run(name+"/"+p.Name, func(b *testing.B) {
				c := three(steps...).asking(0, "a", history.GVR{Version: "v1", Resource: "configmaps"}, 300*time.Millisecond, 13).
					asking(0, "c", onlyNew, 500*time.Millisecond, 4).asking(3, "b", onlyNew, time.Second, 3)
				c.Settled = true
				setup := only(b, p)
				var seeds atomic.Uint64
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					s, t := New(setup), &tape.Tape{}
					defer s.Close()
					for pb.Next() {
						t.Reset(seeds.Add(1))
						r, err := s.Run(c, t, Options{})
						if err != nil {
							b.Error(err)
							return
						}
						s.Recycle(r) // as a search does with all runs that it need not judge
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "schedules/s")
			})
		}
	}
}

// BenchmarkGrowth measures the cost of a schedule with more requests, and with more servers. With
// the reference, each server asks every other server what it serves, always at the same interval.
// So the number of events grows with the square of the number of servers. 1.37 asks only when a
// lease changes, which does not happen here. ns/event is the cost of one event.
func BenchmarkGrowth(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(1600))
	for _, p := range []proxy.Policy{proxy.Reference(), proxy.Upstream137()} {
		for _, servers := range []int{3, 10, 30, 100} {
			b.Run(fmt.Sprintf("servers=%d/%s", servers, p.Name), func(b *testing.B) { growth(b, p, servers, 20) })
		}
		for _, requests := range []int{20, 200, 2000} {
			b.Run(fmt.Sprintf("requests=%d/%s", requests, p.Name), func(b *testing.B) { growth(b, p, 3, requests) })
		}
	}
}

func growth(b *testing.B, p proxy.Policy, servers, requests int) {
	c := three(cutting("b", "a"), soak(5*time.Second), scenario.Step{Action: scenario.Heal, Label: "ba"}, soak(5*time.Second))
	for i := len(c.Servers); i < servers; i++ {
		c.Servers = append(c.Servers, scenario.Server{Name: fmt.Sprintf("s%d", i), Version: older})
	}
	c.asking(0, "b", onlyNew, 5*time.Second/time.Duration(requests), requests)
	c.Settled = true
	s, t := New(only(b, p)), &tape.Tape{}
	defer s.Close()
	run := func() int {
		t.Reset(1)
		r, err := s.Run(c, t, Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Recycle(r)
		return r.Events
	}
	run() // this first run brings the control plane up, once for all runs
	events := 0
	b.ReportAllocs()
	for b.Loop() {
		events += run()
	}
	b.ReportMetric(float64(events)/float64(b.N), "events/op")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
}
