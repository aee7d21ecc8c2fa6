package traffic

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// chooser decides what a lane asks for next. It knows no clock and no responses, so its choices depend on the seed and
// the probes alone. Not safe for concurrent use.
type chooser struct {
	random  *rand.Rand
	mix     Mix
	decks   decks
	write   deck // resources everybody serves and that objects can be created of
	objects *objects
	absent  string         // prefix of the names of objects that nobody ever creates
	seq     int            // counts those names
	groups  []schemaGroup  // for the legacy documents
	visited map[string]int // rotates through the requests possible for a resource
	profile Profile
	herd    herd
}

// writeShare is how many percent of the requests on resources that can be written to are about objects of ours.
const writeShare = 35

type schemaGroup struct{ group, version string }

func newChooser(lane string, random *rand.Rand, mix Mix) *chooser {
	return &chooser{
		random: random, mix: mix, decks: decks{}, objects: newObjects(lane, random),
		absent: "skewproof-absent-" + lane, visited: map[string]int{}, herd: herd{lane: lane},
	}
}

// use replaces the probes.
func (c *chooser) use(probes []Probe) {
	c.decks, c.write, c.groups = newDecks(probes), deck{}, nil
	if c.profile == ProfileLargeLists {
		c.herd.use(probes)
	}
	for _, p := range probes {
		if p.Class == Everywhere && c.canWrite(p.Resource) {
			c.write.probes = append(c.write.probes, p)
		}
		known := schemaGroup{p.Resource.Group, p.Resource.Version}
		listed := p.Class == Everywhere || p.Class == Somewhere && c.profile == ProfileDiscovery
		if listed && known.group != "" && !slices.Contains(c.groups, known) {
			c.groups = append(c.groups, known)
		}
	}
}

// next is the next request.
func (c *chooser) next() action {
	if request, ok := c.own(); ok {
		return request
	}
	probe, ok := c.decks.pick(c.mix, c.random)
	if !ok {
		return c.discovery()
	}
	if probe.Subresource != "" {
		return c.subresource(probe)
	}
	// Few resources can be written to. Dealt like all others, they would make writes a rarity.
	if probe.Class == Everywhere && len(c.write.probes) > 0 && c.random.IntN(100) < writeShare {
		return c.objects.next(c.write.deal(c.random).Resource)
	}
	r := probe.Resource
	if probe.Class != Everywhere && c.canWrite(r) && c.random.IntN(100) < writeShare {
		return c.objects.next(r)
	}
	possible := c.possible(r)
	// One possibility after the other, so that over time every verb of every resource is asked for.
	key := r.GVR.String()
	chosen := possible[c.visited[key]%len(possible)]
	c.visited[key]++
	return chosen()
}

// canWrite reports whether objects of the resource can be made, and may be.
func (c *chooser) canWrite(r history.Resource) bool { return c.objects.canWrite(r) && !c.herd.keeps(r) }

// subresource asks for the one subresource that a probe is about, with one verb of it after the other.
func (c *chooser) subresource(p Probe) action {
	i := slices.IndexFunc(p.Resource.Subresources, func(s history.Subresource) bool { return s.Name == p.Subresource })
	if i < 0 { // made up
		return get(p.Resource, c.absentName(), p.Subresource)
	}
	verbs := p.Resource.Subresources[i].Verbs
	key := p.Resource.String() + "/" + p.Subresource
	for range verbs {
		verb := verbs[c.visited[key]%len(verbs)]
		c.visited[key]++
		if request, ok := sweepRequest(p.Resource, p.Subresource, verb); ok {
			return request.action()
		}
	}
	return get(p.Resource, c.absentName(), p.Subresource)
}

// possible are the requests that a resource can be asked for without an object of ours, by the verbs it lists.
func (c *chooser) possible(r history.Resource) []func() action {
	has := func(verb string) bool { return slices.Contains(r.Verbs, verb) }
	var all []func() action
	if has("list") {
		all = append(all,
			func() action { return list(r) },
			func() action {
				return raw{path: path(r.GVR, "", "", ""), query: limit, header: accept(acceptTable)}.action()
			},
			func() action {
				return raw{path: path(r.GVR, "", "", ""), query: limit, header: accept(acceptProtobuf)}.action()
			})
	}
	if has("get") {
		all = append(all, func() action { return get(r, c.absentName()) })
	}
	if has("watch") {
		all = append(all, func() action { return watch(r, 1+c.random.Int64N(3)) })
	}
	for _, s := range r.Subresources {
		// A GET of exec, attach, portforward or proxy asks for a connection, not for an object.
		if slices.Contains(s.Verbs, "get") && slices.Contains(s.Verbs, "update") && s.Name != "proxy" {
			all = append(all, func() action { return get(r, c.absentName(), s.Name) })
		}
	}
	if has("patch") {
		all = append(all, func() action { return mergePatch(r, c.absentName(), []byte(`{}`)) })
	}
	if has("delete") {
		all = append(all, func() action { return remove(r, c.absentName()) })
	}
	if has("create") || len(all) == 0 {
		// An empty object is refused by validation, after routing; dryRun holds back the few that it suits.
		all = append(all, func() action {
			request, _ := sweepRequest(r, "", "create")
			return request.action()
		})
	}
	return all
}

// discovery asks for a discovery document: mostly the merged one, whose quarter of conditional requests is answered 304
// by a server whose document is still the one it last gave; seldom the local and legacy ones.
func (c *chooser) discovery() action {
	if c.profile == ProfileDiscovery && c.random.IntN(2) == 0 {
		return c.rareDiscovery()
	}
	switch n := c.random.IntN(100); {
	case n < 55:
		return raw{path: "/apis", header: accept(acceptAggregated)}.action()
	case n < 75:
		return conditionalDiscovery()
	case n < 90 || len(c.groups) == 0:
		return raw{path: "/api", header: accept(acceptAggregated)}.action()
	case n < 95:
		return raw{path: "/apis/" + c.groups[c.random.IntN(len(c.groups))].group}.action()
	default:
		g := c.groups[c.random.IntN(len(c.groups))]
		return raw{path: "/apis/" + g.group + "/" + g.version}.action()
	}
}

func (c *chooser) absentName() string {
	c.seq++
	return fmt.Sprintf("%s-%d", c.absent, c.seq)
}

var (
	limit  = map[string]string{"limit": fmt.Sprint(listLimit)}
	dryRun = map[string]string{"dryRun": "All"}
)

func accept(mediaType string) map[string]string { return map[string]string{"Accept": mediaType} }
func contentType(mediaType string) map[string]string {
	return map[string]string{"Content-Type": mediaType}
}
