package sim

import (
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/scenarios"
	"github.com/skewproof/skewproof/sim/tape"
)

// BenchmarkSchedule is one schedule of three servers and twenty requests, seven of which are passed on: with two faults of links and their
// healing, and with a server that is restarted in between. Each CPU has a simulator of its own: -cpu 1,2 tells what a second one brings.
func BenchmarkSchedule(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(1600)) // as the searches of the command have it
	slow := scenarios.Step{Action: scenarios.Inject, Label: "slow", Fault: &fault.Fault{Kind: fault.Latency, From: "c", To: "a", Latency: 50 * time.Millisecond}}
	heal := func(label string) scenarios.Step { return scenarios.Step{Action: scenarios.Heal, Label: label} }
	for name, steps := range map[string][]scenarios.Step{
		"links":   {cutting("b", "a"), slow, soak(5 * time.Second), heal("ba"), heal("slow"), soak(5 * time.Second)},
		"restart": {cutting("b", "a"), soak(5 * time.Second), {Action: scenarios.Restart, Server: "c"}, heal("ba"), soak(5 * time.Second)},
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
						if _, err := s.Run(c, t, Options{}); err != nil {
							b.Error(err)
							return
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "schedules/s")
			})
		}
	}
}
