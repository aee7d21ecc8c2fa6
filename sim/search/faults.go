package search

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
)

// The parameters of faults. What only delays is kept so short that a request still comes through in the time that every policy allows
// it: invariants take a link that is slow for one that works.
var (
	delays = [...]time.Duration{20 * time.Millisecond, 200 * time.Millisecond, 700 * time.Millisecond, 1500 * time.Millisecond}
	rates  = [...]int64{1_000_000, 100_000, 20_000}
	limits = [...]int64{100, 256, 300, 1000, 5000}
	afters = [...]time.Duration{0, 0, 100 * time.Millisecond, 2 * time.Second, 8 * time.Second}
	ways   = [...]fault.Direction{"", fault.Up, fault.Down}
)

func (g *Generator) way() fault.Direction { return ways[g.fault(len(ways))] }

// hole is a black hole.
func (g *Generator) hole(from, to string) fault.Fault {
	return fault.Fault{Kind: fault.Timeout, From: from, To: to, Direction: g.way(), After: afters[g.fault(len(afters))]}
}

// slow lets everything through, later.
func (g *Generator) slow(from, to string) fault.Fault {
	f := fault.Fault{From: from, To: to, Direction: g.way()}
	switch g.fault(6) {
	case 0, 1, 2:
		f.Kind, f.Latency = fault.Latency, delays[g.fault(len(delays))]
		if g.chance(2) {
			f.Jitter = f.Latency / 2
		}
	case 3:
		f.Kind, f.Rate = fault.Bandwidth, rates[g.fault(len(rates))]
	case 4:
		f.Kind, f.Size, f.Delay = fault.Slicer, 500, time.Millisecond
	default:
		f.Kind, f.Delay = fault.SlowClose, delays[g.fault(len(delays))]
	}
	return f
}

// broken lets some of what is sent through.
func (g *Generator) broken(from, to string) fault.Fault {
	f := fault.Fault{From: from, To: to, Direction: g.way()}
	if g.fault(2) == 0 {
		f.Kind, f.After = fault.Reset, afters[g.fault(len(afters))]
	} else {
		f.Kind, f.Bytes = fault.LimitData, limits[g.fault(len(limits))]
	}
	return f
}

// blocking lets nothing through.
func (g *Generator) blocking(from, to string) fault.Fault {
	if g.fault(3) < 2 {
		return fault.Fault{Kind: fault.Cut, From: from, To: to}
	}
	return fault.Fault{Kind: fault.Timeout, From: from, To: to}
}

// anything is any fault.
func (g *Generator) anything(from, to string) fault.Fault {
	switch g.fault(4) {
	case 0:
		return g.slow(from, to)
	case 1:
		return g.broken(from, to)
	case 2:
		return g.hole(from, to)
	default:
		return g.blocking(from, to)
	}
}
