package traffic

import (
	"errors"
	"math/rand/v2"
)

// Mix is what share of the requests goes where, in percent; the rest goes to resources that every server serves. A share
// of a class that has no probes falls to that rest.
type Mix struct {
	Somewhere int // resources that only some servers serve
	Nowhere   int // what nobody serves
	Discovery int // discovery documents
}

// DefaultMix leans on what the Mixed Version Proxy is about.
var DefaultMix = Mix{Somewhere: 33, Nowhere: 10, Discovery: 5}

func (m Mix) check() error {
	if m.Somewhere < 0 || m.Nowhere < 0 || m.Discovery < 0 || m.Somewhere+m.Nowhere+m.Discovery > 100 {
		return errors.New("traffic mix: shares are percentages, none negative, together at most 100")
	}
	return nil
}

// deck deals the probes of one class so that each is visited once before any is visited again, in an order that the
// generator chooses anew for each round. Not safe for concurrent use.
type deck struct {
	probes []Probe
	next   int
}

func (d *deck) deal(random *rand.Rand) Probe {
	if d.next == 0 {
		random.Shuffle(len(d.probes), func(i, j int) { d.probes[i], d.probes[j] = d.probes[j], d.probes[i] })
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

// pick chooses the class by the mix and deals a probe of it. The second result is false when discovery was chosen, or
// there are no probes at all.
func (d decks) pick(mix Mix, random *rand.Rand) (Probe, bool) {
	n := random.IntN(100)
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
			return chosen.deal(random), true
		}
	}
	return Probe{}, false
}
