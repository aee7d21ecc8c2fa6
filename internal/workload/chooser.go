package workload

import (
	"cmp"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Choices is the source of random choices for a [Chooser]: a *rand.Rand of math/rand/v2, or a tape
// of the simulator. IntN returns a number in [0, n).
type Choices interface{ IntN(n int) int }

// Options are the options of a [Chooser].
type Options struct {
	// Lane is the name of the chooser, unique in a run. By convention it is the name of the server
	// that gets its requests.
	Lane string
	// Choices is the source of random choices. Required.
	Choices Choices
	// Profile says which requests get more weight. The zero value is the general load.
	Profile scenario.Traffic
	// Users are the senders. The first of them may do everything. Default: [Users].
	Users []string
	// Nodes is the share, in percent, of requests that a kubelet sends as [Node].
	Nodes int
	// ReadOnly keeps to requests that read: nothing is created or changed, not even as a dry run.
	ReadOnly bool
	// Can reports whether the sender is able to send a request. If it is not, the chooser chooses
	// another request. Default: the sender can send all requests.
	Can func(*Request) bool
}

// Chooser chooses the next request. The result depends only on its options and probes. It is not
// safe for concurrent use.
type Chooser struct {
	Options
	mix      Mix
	decks    decks
	writable deck // resources that every server serves and whose objects can be created
	groups   []history.GVR
	possible map[rotation][]Request // for the present probes; each list is used in turn
	turns    map[rotation]int
	live     map[history.GVR][]string
	made     int // number of objects created
	large    largeList
	kubelets kubelets
}

// NewChooser returns a chooser, which chooses only discovery requests until Use.
func NewChooser(o Options) *Chooser {
	mix := DefaultMix
	if o.Profile == scenario.DiscoveryTraffic {
		mix = discoveryMix
	}
	if len(o.Users) == 0 {
		o.Users = Users()
	}
	return &Chooser{Options: o, mix: mix, turns: map[rotation]int{}, live: map[history.GVR][]string{}}
}

// Use replaces the probes, from the next request on.
func (c *Chooser) Use(probes []Probe) {
	if c.ReadOnly {
		probes = readable(probes)
	}
	c.decks, c.writable, c.groups, c.possible = newDecks(probes), deck{}, nil, map[rotation][]Request{}
	if c.Profile == scenario.LargeListTraffic {
		c.large.use(probes)
	}
	c.kubelets.use(probes)
	for _, p := range probes {
		if p.Class == Everywhere && c.canWrite(p.Resource) {
			c.writable.probes = append(c.writable.probes, p)
		}
		version := history.GVR{Group: p.Resource.Group, Version: p.Resource.Version}
		listed := p.Class == Everywhere || p.Class == Somewhere && c.Profile == scenario.DiscoveryTraffic
		if listed && version.Group != "" && !slices.Contains(c.groups, version) {
			c.groups = append(c.groups, version)
		}
	}
}

// mostRefused is the maximum number of requests in a row that the sender cannot send.
const mostRefused = 16

// variedShare says that one in so many requests of format traffic is varied ([Vary]).
const variedShare = 4

// Next returns the next request.
func (c *Chooser) Next() Request {
	if c.Nodes > 0 && c.Choices.IntN(100) < c.Nodes {
		if r, ok := c.kubelets.next(); ok {
			if r.Verb == "watch" {
				r.For = c.seconds(3)
			}
			return r
		}
	}
	user := c.Users[c.Choices.IntN(len(c.Users))]
	r := c.choose()
	for i := 0; c.Can != nil && !c.Can(&r); i++ {
		if r = c.choose(); i == mostRefused {
			r = Request{Verb: history.VerbDiscovery, Path: "/apis"}
			break
		}
	}
	if c.Profile == scenario.FormatTraffic && r.Client == "" && c.Choices.IntN(variedShare) == 0 {
		Vary(&r, 2, c.Choices)
	}
	r.User = cmp.Or(r.User, user)
	r.Client = cmp.Or(r.Client, ClientREST)
	if c.Profile == scenario.HostileTraffic && c.Choices.IntN(100) < hostileShare {
		r.Forged = Forgeries[c.Choices.IntN(len(Forgeries))].Name
	}
	return r
}

// rotation identifies requests for a resource that are chosen in turn: for its subresources ("*"),
// for one of them, in its forms ("forms"), or for the resource itself ("").
type rotation struct {
	of   history.GVR
	what string
}

// turn returns the number of earlier turns of a rotation, and counts this one.
func (c *Chooser) turn(of history.GVR, what string) int {
	n := c.turns[rotation{of, what}]
	c.turns[rotation{of, what}]++
	return n
}

// once returns the requests of a rotation. It makes them once for the present probes.
func (c *Chooser) once(r history.Resource, what string, all func(history.Resource) []Request) []Request {
	key := rotation{r.GVR, what}
	if c.possible[key] == nil {
		c.possible[key] = all(r)
	}
	return c.possible[key]
}

// writeShare is the share, in percent, of requests on writable resources that use the objects of
// the load.
const writeShare = 35

func (c *Chooser) choose() Request {
	if r, ok := c.own(); ok {
		return r
	}
	probe, ok := c.decks.pick(c.mix, c.Choices)
	if !ok {
		return c.discovery()
	}
	if probe.Subresource != "" {
		return c.subresource(probe)
	}
	// Only few resources are writable. If they were dealt like all others, writes would be rare.
	if probe.Class == Everywhere && len(c.writable.probes) > 0 && c.Choices.IntN(100) < writeShare {
		return c.nextOfLife(c.writable.deal(c.Choices).Resource)
	}
	r := probe.Resource
	if probe.Class != Everywhere && c.canWrite(r) && c.Choices.IntN(100) < writeShare {
		return c.nextOfLife(r)
	}
	// Take the possible requests in turn, so that over time every verb of every resource is
	// requested.
	possible := c.once(r, "", possibleFor)
	chosen := possible[c.turn(r.GVR, "")%len(possible)]
	if chosen.Verb == "watch" {
		chosen.For = c.seconds(3)
	}
	return chosen
}

// own returns a request of the profile's own kind. It returns false if the choice falls on the
// general load, or if there is no such request.
func (c *Chooser) own() (Request, bool) {
	if c.large.growing() {
		return c.large.grow(c.Lane, c.Users[0]), true
	}
	share := ownShares[c.Profile]
	if share == 0 || c.Choices.IntN(100) >= share {
		return Request{}, false
	}
	if c.Profile == scenario.LargeListTraffic {
		return c.large.list(c.Choices)
	}
	probe, ok := c.decks.pick(Mix{Somewhere: 50, Nowhere: 5}, c.Choices)
	if !ok {
		return Request{}, false
	}
	switch r := probe.Resource; c.Profile {
	case scenario.WatchTraffic:
		if !slices.Contains(r.Verbs, "watch") {
			return Request{}, false
		}
		return watch(r, c.seconds(10)), true
	case scenario.SubresourceTraffic:
		return c.anySubresource(probe)
	case scenario.UpgradeTraffic:
		return c.upgrade(probe), true
	default:
		return c.format(r)
	}
}

func (c *Chooser) seconds(most int) time.Duration {
	return time.Duration(1+c.Choices.IntN(most)) * time.Second
}
