package workload

import "github.com/skewproof/skewproof/internal/scenario"

// Mix has the shares of requests, in percent. The rest goes to resources that every server serves.
// The share of a class without probes goes to this rest too.
type Mix struct {
	Somewhere int // resources that only some servers serve
	Nowhere   int // resources that no server serves
	Discovery int // discovery documents
}

// DefaultMix gives more weight to resources that need the Mixed Version Proxy.
var DefaultMix = Mix{Somewhere: 33, Nowhere: 10, Discovery: 5}

// discoveryMix is the mix of discovery traffic. Each merged document is a quarter of a megabyte.
var discoveryMix = Mix{Somewhere: 33, Nowhere: 10, Discovery: 15}

// ownShares are the shares, in percent, of requests of a profile's own kind. The rest is the
// general load, so that these requests run together with all others. Profiles that are not listed
// have no requests of their own kind, but another mix, more headers or a lower rate.
var ownShares = map[scenario.Traffic]int{
	scenario.WatchTraffic: 60, scenario.SubresourceTraffic: 60, scenario.FormatTraffic: 60, scenario.UpgradeTraffic: 15,
	scenario.LargeListTraffic: 6,
}

// sparseness is the factor by which the rate of sparse traffic is lower.
const sparseness = 100

// Rate returns the number of requests per second of a profile if the general load has qps.
func Rate(profile scenario.Traffic, qps float64) float64 {
	if profile == scenario.SparseTraffic {
		return qps / sparseness
	}
	return qps
}

// deck deals the probes of one class. It deals each probe once before it deals any probe again. It
// chooses a new order for each round.
type deck struct {
	probes []Probe
	next   int
}

func (d *deck) deal(choices Choices) Probe {
	if d.next == 0 {
		for i := len(d.probes) - 1; i > 0; i-- {
			j := choices.IntN(i + 1)
			d.probes[i], d.probes[j] = d.probes[j], d.probes[i]
		}
	}
	p := d.probes[d.next]
	d.next = (d.next + 1) % len(d.probes)
	return p
}

// decks is one deck for each class.
type decks map[Class]*deck

func newDecks(probes []Probe) decks {
	all := decks{}
	for _, p := range probes {
		if all[p.Class] == nil {
			all[p.Class] = &deck{}
		}
		all[p.Class].probes = append(all[p.Class].probes, p)
	}
	return all
}

// pick chooses the class by the mix and deals a probe of it. The second result is false if
// discovery was chosen, or if there are no probes.
func (d decks) pick(mix Mix, choices Choices) (Probe, bool) {
	n := choices.IntN(100)
	if n < mix.Discovery || len(d) == 0 {
		return Probe{}, false
	}
	class := Everywhere
	switch n -= mix.Discovery; {
	case n < mix.Somewhere:
		class = Somewhere
	case n < mix.Somewhere+mix.Nowhere:
		class = Nowhere
	}
	for _, c := range []Class{class, Everywhere, Somewhere, Nowhere} {
		if chosen := d[c]; chosen != nil {
			return chosen.deal(choices), true
		}
	}
	return Probe{}, false
}
