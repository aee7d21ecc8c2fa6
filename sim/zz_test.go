package sim

import (
	"testing"
	"time"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim/recorded"
	"github.com/skewproof/skewproof/sim/tape"
)

func BenchmarkZZLoad(b *testing.B) {
	for _, profile := range []string{"", "watch", "discovery"} {
		b.Run("p="+profile, func(b *testing.B) {
			c := three(soak(60 * time.Second))
			c.Load = &Load{QPS: 110}
			c.Load.Traffic = c.Load.Traffic[:0] + (c.Load.Traffic)
			c.Load.Traffic = zz(profile)
			s := New(Setup{Version: recorded.Get, Policy: func(string) (proxy.Policy, bool) { return proxy.Reference(), true }})
			defer s.Close()
			b.ReportAllocs()
			for b.Loop() {
				r, err := s.Run(c, tape.Seeded(1), Options{})
				if err != nil {
					b.Fatal(err)
				}
				s.Recycle(r)
			}
		})
	}
}
