package search

import (
	"strconv"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

// These are the parameters of faults. Delays are so short that requests succeed under every policy,
// because the invariants treat a slow link as a working one.
var (
	delays = [...]time.Duration{20 * time.Millisecond, 200 * time.Millisecond, 700 * time.Millisecond, 1500 * time.Millisecond}
	rates  = [...]int64{1_000_000, 100_000, 20_000}
	// The headers of an answer in the simulator have 256 bytes: the answer breaks off before its body.
	limits     = [...]int64{100, 256, 256, 256, 1000, 5000}
	afters     = [...]time.Duration{0, 0, 100 * time.Millisecond, 2 * time.Second, 8 * time.Second}
	directions = [...]fault.Direction{"", fault.Up, fault.Down}
	// losses are the directions of faults that lose data. Most of them lose answers only, because a
	// peer may have carried out a request whose answer is lost.
	losses = [...]fault.Direction{"", fault.Down, fault.Down, fault.Up}
)

func (g *Generator) direction() fault.Direction { return directions[g.fault(len(directions))] }

// blackHole lets no answer through.
func (g *Generator) blackHole(from, to string) fault.Fault {
	return fault.Fault{Kind: fault.Timeout, From: from, To: to, Direction: losses[g.fault(len(losses))], After: afters[g.fault(len(afters))]}
}

// slow delays everything by the same time or so.
func (g *Generator) slow(from, to string) fault.Fault {
	f := fault.Fault{Kind: fault.Latency, From: from, To: to, Direction: g.direction(), Latency: delays[g.fault(len(delays))]}
	if g.chance(2) {
		f.Jitter = f.Latency / 2
	}
	return f
}

// delaying delays everything and loses nothing.
func (g *Generator) delaying(from, to string) fault.Fault {
	n := g.fault(6)
	if n < 3 {
		return g.slow(from, to)
	}
	f := fault.Fault{From: from, To: to, Direction: g.direction()}
	switch n {
	case 3:
		f.Kind, f.Rate = fault.Bandwidth, rates[g.fault(len(rates))]
	case 4:
		f.Kind, f.Size, f.Delay = fault.Slicer, 500, time.Millisecond
	default:
		f.Kind, f.Delay = fault.SlowClose, delays[g.fault(len(delays))]
	}
	return f
}

// truncating resets a connection, or breaks it off after its first bytes.
func (g *Generator) truncating(from, to string) fault.Fault {
	f := fault.Fault{From: from, To: to, Direction: losses[g.fault(len(losses))]}
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

// anyFault is any fault.
func (g *Generator) anyFault(from, to string) fault.Fault {
	switch g.fault(4) {
	case 0:
		return g.delaying(from, to)
	case 1:
		return g.truncating(from, to)
	case 2:
		return g.blackHole(from, to)
	default:
		return g.blocking(from, to)
	}
}

// maxFaults is the maximum number of faults in a case.
const maxFaults = 64

// labels are the names of faults, by their index.
var labels = func() (all [maxFaults]string) {
	for i := range all {
		all[i] = "f" + strconv.Itoa(i+1)
	}
	return all
}()

// inject switches a fault on.
func (g *Generator) inject(f fault.Fault) {
	i := len(g.faults)
	if i == maxFaults {
		return
	}
	g.faults = append(g.faults, f)
	g.add(scenario.Step{Action: scenario.Inject, Label: labels[i], Fault: &g.faults[i]})
}
