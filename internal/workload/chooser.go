package workload

import (
	"cmp"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Choices is where a [Chooser]'s chance comes from: a *rand.Rand of math/rand/v2, or a tape of the simulator. IntN returns
// a number in [0, n).
type Choices interface{ IntN(n int) int }

// Options say what a [Chooser] chooses.
type Options struct {
	// Lane names the chooser: no two of a run may have the same name. The server that is asked is a good one.
	Lane string
	// Choices is required.
	Choices Choices
	// Profile is where the weight lies. The zero value is the general load.
	Profile scenario.Traffic
	// Mix of what is asked for. The zero value is that of the profile, which mostly is DefaultMix.
	Mix Mix
	// Users that ask, the first of which may do everything. Default: [Users].
	Users []string
	// ReadOnly keeps to requests that read: no object is made, and nothing is asked to change, dry run or not.
	ReadOnly bool
	// Can reports whether the sender is able to send a request; another is chosen instead of one that it cannot send.
	// Default: it can send all.
	Can func(*Request) bool
}

// Chooser chooses what is asked next. Its choices depend on its options and probes alone. It is not safe for concurrent
// use.
type Chooser struct {
	Options
	decks    decks
	writable deck // resources that everybody serves and that objects can be created of
	groups   []history.GVR
	possible map[rotation][]Request // in turn, of the present probes
	turns    map[rotation]int
	live     map[history.GVR][]string
	made     int // objects
	large    largeList
}

// NewChooser checks the options. Until Use, the chooser asks for discovery only.
func NewChooser(o Options) (*Chooser, error) {
	if err := checkProfile(o.Profile); err != nil {
		return nil, err
	}
	if err := o.Mix.check(); err != nil {
		return nil, err
	}
	usual := DefaultMix
	if o.Profile == scenario.DiscoveryTraffic {
		usual = discoveryMix
	}
	o.Mix = cmp.Or(o.Mix, usual)
	if len(o.Users) == 0 {
		o.Users = Users()
	}
	return &Chooser{Options: o, turns: map[rotation]int{}, live: map[history.GVR][]string{}}, nil
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

// mostRefused bounds how often in a row another request is chosen because the sender cannot send one.
const mostRefused = 16

// Next is the next request.
func (c *Chooser) Next() Request {
	user := c.Users[c.Choices.IntN(len(c.Users))]
	r := c.choose()
	for i := 0; c.Can != nil && !c.Can(&r); i++ {
		if r = c.choose(); i == mostRefused {
			r = Request{Verb: history.VerbDiscovery, Path: "/apis"}
			break
		}
	}
	r.User = cmp.Or(r.User, user)
	r.Client = cmp.Or(r.Client, ClientREST)
	if c.Profile == scenario.HostileTraffic && c.Choices.IntN(100) < hostileShare {
		r.Forged = Forgeries[c.Choices.IntN(len(Forgeries))].Name
	}
	return r
}

// rotation is something of a resource that is asked for in turn: its subresources ("*"), one of them, its forms ("forms"),
// or requests for itself ("").
type rotation struct {
	of   history.GVR
	what string
}

// turn returns how often it was the turn of something before.
func (c *Chooser) turn(of history.GVR, what string) int {
	n := c.turns[rotation{of, what}]
	c.turns[rotation{of, what}]++
	return n
}

// once makes the requests of a rotation, once for the present probes.
func (c *Chooser) once(r history.Resource, what string, all func(history.Resource) []Request) []Request {
	key := rotation{r.GVR, what}
	if c.possible[key] == nil {
		c.possible[key] = all(r)
	}
	return c.possible[key]
}

// writeShare is how many percent of the requests on resources that can be written to are about objects of the load.
const writeShare = 35

func (c *Chooser) choose() Request {
	if r, ok := c.own(); ok {
		return r
	}
	probe, ok := c.decks.pick(c.Mix, c.Choices)
	if !ok {
		return c.discovery()
	}
	if probe.Subresource != "" {
		return c.subresource(probe)
	}
	// Few resources can be written to. Dealt like all others, they would make writes a rarity.
	if probe.Class == Everywhere && len(c.writable.probes) > 0 && c.Choices.IntN(100) < writeShare {
		return c.nextOfLife(c.writable.deal(c.Choices).Resource)
	}
	r := probe.Resource
	if probe.Class != Everywhere && c.canWrite(r) && c.Choices.IntN(100) < writeShare {
		return c.nextOfLife(r)
	}
	// One possibility after the other, so that over time every verb of every resource is asked for.
	possible := c.once(r, "", possibleFor)
	chosen := possible[c.turn(r.GVR, "")%len(possible)]
	if chosen.Verb == "watch" {
		chosen.For = c.seconds(3)
	}
	return chosen
}

// own is a request of the profile's own kind; false if it is not the turn of one, or there is nothing to ask for in that
// way.
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

// anySubresource asks for one subresource of a resource after the other.
func (c *Chooser) anySubresource(p Probe) (Request, bool) {
	if p.Subresource != "" {
		return c.subresource(p), true
	}
	all := slices.DeleteFunc(slices.Clone(p.Resource.Subresources), func(s history.Subresource) bool { return s.Name == "proxy" })
	if len(all) == 0 {
		return Request{}, false
	}
	p.Subresource = all[c.turn(p.Resource.GVR, "*")%len(all)].Name
	return c.subresource(p), true
}

// subresource asks for the one subresource that a probe is about, with one verb of it after the other.
func (c *Chooser) subresource(p Probe) Request {
	absent := get(p.Resource, absentName, p.Subresource)
	i := slices.IndexFunc(p.Resource.Subresources, func(s history.Subresource) bool { return s.Name == p.Subresource })
	if i < 0 { // made up
		return absent
	}
	verbs := p.Resource.Subresources[i].Verbs
	for range verbs {
		verb := verbs[c.turn(p.Resource.GVR, p.Subresource)%len(verbs)]
		if r, ok := visit(p.Resource, p.Subresource, verb); ok {
			return r
		}
	}
	return absent
}

// PodConnections are the subresources by which a client gets a connection to what runs in a pod. The pod does not exist:
// what is learned is whether a request that asks for an upgrade is answered as any other.
var PodConnections = []string{"exec", "attach", "portforward"}

// upgrade asks for a watch by WebSocket (k8s.io/apiserver, endpoints/handlers/watch.go) or, where the probe has none, for
// a connection to a pod.
func (c *Chooser) upgrade(p Probe) Request {
	if p.Subresource == "" && slices.Contains(p.Resource.Verbs, "watch") {
		return Request{Verb: "watch", GVR: p.Resource.GVR, Query: "resourceVersion=0", Upgrade: true, For: c.seconds(5)}
	}
	r := Request{Verb: "get", GVR: history.GVR{Version: "v1", Resource: "pods"}, Namespace: Namespace, Name: absentName, Upgrade: true}
	r.Subresource = PodConnections[c.Choices.IntN(len(PodConnections))]
	if r.Subresource != "portforward" {
		r.Query = "command=true&stdout=true"
	}
	return r
}

// discovery asks for a discovery document: mostly the merged one, and a quarter of that on a condition, which a server
// answers with 304 whose document is still the one that it last gave; seldom for local documents and older forms.
func (c *Chooser) discovery() Request {
	if c.Profile == scenario.DiscoveryTraffic && c.Choices.IntN(2) == 0 {
		return c.rareDiscovery()
	}
	merged := Request{Verb: history.VerbDiscovery, Path: "/apis"}
	switch n := c.Choices.IntN(100); {
	case n < 55:
	case n < 75:
		merged.Cached = CachedLast
	case n < 90 || len(c.groups) == 0:
		merged.Path = "/api"
	case n < 95:
		return c.group(false)
	default:
		return c.group(true)
	}
	return merged
}

// group asks for the document of one group, or of one of its versions.
func (c *Chooser) group(version bool) Request {
	g := c.groups[c.Choices.IntN(len(c.groups))]
	r := Request{Verb: "get", GVR: g, Path: "/apis/" + g.Group + "/" + g.Version}
	if !version {
		r.GVR.Version, r.Path = "", "/apis/"+g.Group
	}
	return r
}

// rareDiscovery is what clients of other ages and kinds ask for: the server's own view, forms without aggregation,
// OpenAPI, and what kubectl makes of the merged document. The whole of OpenAPI 2 is some megabytes.
func (c *Chooser) rareDiscovery() Request {
	older := Request{Verb: history.VerbLegacy, Path: [...]string{"/apis", "/api"}[c.Choices.IntN(2)]}
	openAPI := func(path string) Request { return Request{Verb: history.VerbOpenAPI, Path: path, Accept: mediaJSON} }
	const many = 1 << 20 // of which a remainder is as good as a choice among a few
	switch n := c.Choices.IntN(1000); {
	case n < 250:
		older.Verb = history.VerbNoPeer
	case n < 400:
	case n < 450:
		older.Accept = acceptLegacyProtobuf
	case n < 500:
		older.Accept = acceptBeta
	case n < 600:
		return Request{Verb: history.VerbDiscovery, Path: "/apis", Cached: CachedAny, Pick: c.Choices.IntN(many)}
	case n < 800:
		return Request{Verb: history.VerbDiscovery, Path: "/apis", Cached: CachedLast, Then: ThenPreferred, Pick: c.Choices.IntN(many)}
	case n < 900:
		return openAPI(OpenAPIv3)
	case n < 904:
		return openAPI(OpenAPIv2)
	case len(c.groups) > 0:
		g := c.groups[c.Choices.IntN(len(c.groups))]
		r := Request{Verb: "get", GVR: g, Path: "/apis/" + g.Group + "/" + g.Version, Accept: mediaJSON}
		if c.Choices.IntN(2) != 0 {
			r.GVR.Version, r.Path = "", "/apis/"+g.Group
		}
		if c.Choices.IntN(3) == 0 {
			return openAPI(OpenAPIv3 + "/apis/" + g.Group + "/" + g.Version)
		}
		return r
	}
	return older
}

// possibleFor are the requests that a resource can be asked for without an object of the load, by the verbs it lists.
func possibleFor(r history.Resource) []Request {
	has := func(verb string) bool { return slices.Contains(r.Verbs, verb) }
	var all []Request
	if has("list") {
		all = append(all,
			Request{Verb: "list", GVR: r.GVR, Namespace: namespaceOf(r), Query: limit, Client: ClientDynamic},
			Request{Verb: history.VerbTable, GVR: r.GVR, Query: limit},
			Request{Verb: "list", GVR: r.GVR, Query: limit, Accept: acceptProtobuf})
	}
	if has("get") {
		all = append(all, get(r, absentName, ""))
	}
	if has("watch") {
		all = append(all, watch(r, 0))
	}
	for _, s := range r.Subresources {
		// A GET of exec, attach, portforward or proxy asks for a connection, not for an object.
		if slices.Contains(s.Verbs, "get") && slices.Contains(s.Verbs, "update") && s.Name != "proxy" {
			all = append(all, get(r, absentName, s.Name))
		}
	}
	if has("patch") {
		all = append(all, patch(r, absentName, "", mergePatch, `{}`))
	}
	if has("delete") {
		all = append(all, about(r, absentName, "delete"))
	}
	if has("create") || len(all) == 0 {
		// An empty object is refused by validation, after routing; dryRun holds back the few that it suits.
		create, _ := visit(r, "", "create")
		all = append(all, create)
	}
	return all
}

// limit keeps the lists of a long run small: how many objects there are proves nothing.
const limit = "limit=20"

// absentName is an object that nobody ever creates.
const absentName = "skewproof-absent"

// about is a request of the dynamic client about one object.
func about(r history.Resource, name, verb string) Request {
	return Request{Verb: verb, GVR: r.GVR, Namespace: namespaceOf(r), Name: name, Client: ClientDynamic}
}

func get(r history.Resource, name, subresource string) Request {
	request := about(r, name, "get")
	request.Subresource = subresource
	return request
}

func patch(r history.Resource, name, subresource, mediaType, body string) Request {
	request := about(r, name, "patch")
	request.Subresource, request.ContentType, request.Body = subresource, mediaType, body
	return request
}

// watch is a short watch. Bookmarks make even one on an empty resource end with something to count.
func watch(r history.Resource, d time.Duration) Request {
	request := about(r, "", "watch")
	request.Query, request.For = "allowWatchBookmarks=true", d
	return request
}

func namespaceOf(r history.Resource) string {
	if r.Namespaced {
		return Namespace
	}
	return ""
}

// ReadVerbs are the verbs that change nothing: what a chooser with Options.ReadOnly, and a sweep of servers that are
// somebody else's, keep to.
var ReadVerbs = []string{"get", "list", "watch"}

// connecting are the subresources whose GET asks for a connection into a container or to what stands behind an object.
var connecting = []string{"exec", "attach", "portforward", "proxy"}

// readable is as much of the probes as can be asked for by reading. What is left of a resource has no verb that writes, so
// that nobody can choose one.
func readable(probes []Probe) []Probe {
	var out []Probe
	writes := func(verb string) bool { return !slices.Contains(ReadVerbs, verb) }
	for _, p := range probes {
		p.Resource = clone(p.Resource)
		p.Resource.Verbs = slices.DeleteFunc(p.Resource.Verbs, writes)
		p.Resource.Subresources = slices.DeleteFunc(p.Resource.Subresources, func(s history.Subresource) bool {
			return slices.Contains(connecting, s.Name) || !slices.Contains(s.Verbs, "get")
		})
		for i, s := range p.Resource.Subresources {
			p.Resource.Subresources[i].Verbs = slices.DeleteFunc(slices.Clone(s.Verbs), writes)
		}
		// A resource of which nothing can be read could only be written to.
		if p.Subresource == "" && len(p.Resource.Verbs) == 0 {
			continue
		}
		if p.Class == Somewhere && p.Subresource != "" &&
			!slices.ContainsFunc(p.Resource.Subresources, func(s history.Subresource) bool { return s.Name == p.Subresource }) {
			continue
		}
		out = append(out, p)
	}
	return out
}
