package traffic

import (
	"fmt"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// Profile says where the weight of a load lies. The zero value is the general load. Any other sends a share of requests of its own kind; the
// rest is the general load, so that whatever a profile is about is seen beside everything else.
type Profile string

// The profiles, by the names that plans use.
const (
	ProfileGeneral      Profile = ""
	ProfileWatches      Profile = "watch"
	ProfileSubresources Profile = "subresource"
	ProfileUpgrades     Profile = "upgrade"
	ProfileFormats      Profile = "format"
	ProfileLargeLists   Profile = "large-list"
	ProfileDiscovery    Profile = "discovery"
	ProfileHostile      Profile = "hostile"
	ProfileSparse       Profile = "sparse"
)

// shares are how many percent of the requests are of a profile's own kind.
var shares = map[Profile]int{
	ProfileGeneral: 0, ProfileSparse: 0, ProfileDiscovery: 0, // whose share is in the mix
	ProfileHostile: 0, // which asks for the same, with more headers
	ProfileWatches: 60, ProfileSubresources: 60, ProfileFormats: 60, ProfileUpgrades: 15, ProfileLargeLists: 6,
}

// sparseness is by how much the rate of [ProfileSparse] is lower.
const sparseness = 100

// manyDocuments is the share of discovery in [ProfileDiscovery]. Each merged document is a quarter of a megabyte.
const manyDocuments = 15

// check refuses a profile that there is not.
func (p Profile) check() error {
	if _, ok := shares[p]; !ok {
		return fmt.Errorf("traffic profile %q: there is none of that name", p)
	}
	return nil
}

// adapt fits the options to their profile, where they leave it the choice.
func (o *Options) adapt() {
	switch o.Profile {
	case ProfileDiscovery:
		if o.Mix == (Mix{}) {
			o.Mix = DefaultMix
			o.Mix.Discovery = manyDocuments
		}
	case ProfileSparse:
		o.QPS /= sparseness
	}
}

// own is a request of the profile's own kind; false if it is not the turn of one, or there is nothing to ask for in that way.
func (c *chooser) own() (action, bool) {
	if c.profile == ProfileLargeLists && c.herd.growing() {
		return c.herd.grow(), true
	}
	share := shares[c.profile]
	if share == 0 || c.random.IntN(100) >= share {
		return action{}, false
	}
	if c.profile == ProfileLargeLists {
		return c.herd.list(c.random)
	}
	probe, ok := c.decks.pick(Mix{Somewhere: 50, Nowhere: 5}, c.random)
	if !ok {
		return action{}, false
	}
	switch c.profile {
	case ProfileWatches:
		if !slices.Contains(probe.Resource.Verbs, "watch") {
			return action{}, false
		}
		return watch(probe.Resource, 1+c.random.Int64N(10)), true
	case ProfileSubresources:
		return c.anySubresource(probe)
	case ProfileUpgrades:
		return c.upgrade(probe)
	case ProfileFormats:
		return c.format(probe.Resource)
	default:
		return action{}, false
	}
}

// anySubresource asks for one subresource of a resource after the other.
func (c *chooser) anySubresource(p Probe) (action, bool) {
	if p.Subresource != "" {
		return c.subresource(p), true
	}
	all := slices.DeleteFunc(slices.Clone(p.Resource.Subresources), func(s history.Subresource) bool { return s.Name == "proxy" })
	if len(all) == 0 {
		return action{}, false
	}
	key := p.Resource.String() + "/*"
	p.Subresource = all[c.visited[key]%len(all)].Name
	c.visited[key]++
	return c.subresource(p), true
}
