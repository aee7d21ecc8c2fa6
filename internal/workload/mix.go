package workload

import (
	"errors"
	"fmt"
	"slices"

	"github.com/skewproof/skewproof/internal/scenario"
)

// Mix is what share of the requests goes where, in percent; the rest goes to resources that every
// server serves. A share of a class that has no probes falls to that rest.
type Mix struct {
	Somewhere int // resources that only some servers serve
	Nowhere   int // what nobody serves
	Discovery int // discovery documents
}

// DefaultMix leans on what the Mixed Version Proxy is about.
var DefaultMix = Mix{Somewhere: 33, Nowhere: 10, Discovery: 5}

// discoveryMix is that of discovery traffic. Each merged document is a quarter of a megabyte.
var discoveryMix = Mix{Somewhere: 33, Nowhere: 10, Discovery: 15}

func (m Mix) check() error {
	if m.Somewhere < 0 || m.Nowhere < 0 || m.Discovery < 0 || m.Somewhere+m.Nowhere+m.Discovery > 100 {
		return errors.New("traffic mix: shares are percentages, none negative, together at most 100")
	}
	return nil
}

// ownShares are how many percent of the requests are of a profile's own kind; the rest is the
// general load, so that what a profile is about is seen beside everything else. Profiles that are
// not listed have no kind of their own: they have another mix, more headers or a lower rate.
var ownShares = map[scenario.Traffic]int{
	scenario.WatchTraffic: 60, scenario.SubresourceTraffic: 60, scenario.FormatTraffic: 60, scenario.UpgradeTraffic: 15,
	scenario.LargeListTraffic: 6,
}

// sparseness is by how much the rate of sparse traffic is lower.
const sparseness = 100

// Rate is how many requests a second a profile sends where the general load sends qps.
func Rate(profile scenario.Traffic, qps float64) float64 {
	if profile == scenario.SparseTraffic {
		return qps / sparseness
	}
	return qps
}

func checkProfile(p scenario.Traffic) error {
	if !slices.Contains(scenario.Traffics, p) {
		return fmt.Errorf("traffic profile %q: want one of %q", p, scenario.Traffics)
	}
	return nil
}

// deck deals the probes of one class so that each is visited once before any is visited again, in
// an order that is chosen anew for each round.
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

// pick chooses the class by the mix and deals a probe of it. The second result is false when
// discovery was chosen, or there are no probes at all.
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
