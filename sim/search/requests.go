package search

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

// addRequests adds the requests.
func (g *Generator) addRequests() {
	left := g.spec.requests()
	// Few cases request discovery, because it costs more than other requests. But these cases
	// request it often: only the answers of several servers in turn, after recovery, show whether
	// the servers agree.
	g.discovers = g.work(4) == 3 || g.defines && g.work(4) > 0
	if compared := min(len(g.names), left/4, 4); g.discovers && compared > 1 {
		path := paths[1-g.work(4)/3]
		for i := range compared {
			g.c.Requests = append(g.c.Requests, sim.Request{
				Step: g.ends, After: time.Duration(i) * 100 * time.Millisecond, Server: g.names[i],
				Request: workload.Request{Verb: history.VerbDiscovery, Path: path},
			})
		}
		left -= compared
	}
	left -= g.createObjects(left / 5)
	for range left {
		g.c.Requests = append(g.c.Requests, g.request())
	}
}

// createObjects creates at most n objects before the disturbances, and returns their number:
// two of one resource, so that there is a list to lose an object from, and one of each of the
// others. Requests for these resources, or for their subresources, are skewed. Most requests for
// objects that do not exist get the same answer, whatever a proxy does.
func (g *Generator) createObjects(n int) (created int) {
	skewed := g.targets.skewed
	g.created = g.work(max(1, len(skewed)))
	before := len(g.c.Requests)
	for i := range skewed {
		one := &skewed[(g.created+i)%len(skewed)]
		names := objects[:1]
		if i == 0 {
			names = []string{objects[0], anotherObject}
		}
		server := slices.IndexFunc(g.names, func(name string) bool {
			return one.served.has(g.versionAfter(g.first, slices.Index(g.names, name)))
		})
		again := slices.ContainsFunc(g.c.Requests[before:], func(r sim.Request) bool { return r.GVR == one.gvr })
		if server < 0 || again {
			continue
		}
		for _, name := range names[:min(len(names), n-created)] {
			g.c.Requests = append(g.c.Requests, sim.Request{
				Step: g.first, Server: g.names[server],
				Request: workload.Request{Verb: "create", GVR: one.gvr, Name: name, User: callers[0]},
			})
			created++
		}
	}
	return created
}

// delaysAfterStep are the times between a step and a request that follows it.
var delaysAfterStep = [...]time.Duration{
	time.Second, 0, 10 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second, 4 * time.Second,
	5500 * time.Millisecond,
	8 * time.Second, 13 * time.Second, 24 * time.Second, 40 * time.Second,
}

// callers are the users who send the requests.
var callers = workload.Users()

// request draws one request.
func (g *Generator) request() sim.Request {
	r := sim.Request{Request: workload.Request{User: callers[g.work(len(callers))]}}
	discovers := g.discovers && g.work(5) == 4
	if !discovers && g.work(3) > 0 && g.aim(&r) {
		g.vary(&r)
		asNode(&r)
		return r
	}
	r.After = delaysAfterStep[g.work(len(delaysAfterStep))]
	r.After += r.After / 16 * time.Duration(g.work(8))
	switch phase := g.work(16); {
	case phase < 9: // during the disturbances
		r.Step = g.first + g.work(g.heals-g.first+1)
	case phase < 10: // before them
		r.Step = g.work(g.first + 1)
	case phase < 13: // during the recovery
		r.Step = g.heals + g.work(g.ends-g.heals)
	default: // afterwards
		r.Step = g.ends
		r.After = min(r.After, 4*time.Second)
	}
	if discovers {
		r.Verb, r.Path = history.VerbDiscovery, paths[1-g.work(4)/3]
		r.Server = g.names[g.work(len(g.names))]
		return r
	}
	g.chooseTarget(&r)
	g.vary(&r)
	asNode(&r)
	return r
}

// asNode lets a kubelet send what kubelets ask for and the reader of the load would ask for.
func asNode(r *sim.Request) {
	if r.User == workload.Reader && workload.AsNode(&r.Request) {
		r.User = workload.Node
	}
}

// vary gives a request unusual options, or a forged header.
func (g *Generator) vary(r *sim.Request) {
	if g.work(8) == 7 {
		workload.Vary(&r.Request, rarelyAnotherMediaType, workChoices{g.tape})
	}
	if g.work(24) == 23 {
		r.Forged = workload.ForgedHop
	}
}

// soonAfter are the times between a disturbance and a request that is aimed at it.
var soonAfter = [...]time.Duration{
	0, 0, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, time.Second, 2 * time.Second,
}

// aim lets a request meet a disturbance, just before it or soon afterwards: the request crosses the
// disturbed link, needs the disturbed server, or is about the definition that changes. If servers
// have missed changes, one in three of these requests is sent after such a change, to the server
// that missed it. aim reports whether there is such a request. Requests that are drawn
// independently of the disturbances seldom meet one, and the first requests after a disturbance
// meet states that later ones do not.
func (g *Generator) aim(r *sim.Request) bool {
	if g.heals == g.first || len(g.names) < 2 {
		return false
	}
	var at, asked, peer int // the step, the server to ask, and the server that serves it
	if n := len(g.unseen); n > 0 && g.work(3) == 2 {
		missed := g.unseen[g.work(n)]
		at, asked, peer = missed.step, missed.by, missed.changed
		r.Step = at + 1
	} else {
		at = g.first + g.work(g.heals-g.first)
		if g.work(6) == 5 {
			at = g.heals + g.work(g.ends-g.heals)
		}
		for at > g.first && g.c.Steps[at].Action == scenario.Soak {
			at-- // to what the schedule waits for
		}
		asked, peer = g.meets(&g.c.Steps[at])
		r.Step = at + g.work(2)
	}
	if d := g.c.Steps[at].Definition; d != nil {
		r.GVR = history.GVR{Group: d.Group, Version: d.Versions[g.work(len(d.Versions))], Resource: d.Resource}
		r.Server = g.names[asked]
	} else if !g.cross(r, at, asked, peer) {
		return false
	}
	r.Name, r.After = objects[g.work(len(objects))], soonAfter[g.work(len(soonAfter))]
	if g.work(2) == 1 { // an answer that says more than "not found" or "forbidden"
		r.Name, r.User = objects[0], callers[0]
	}
	g.chooseVerb(r)
	return true
}

// cross chooses a resource that one server must forward to another, before a step or after it. It
// reports whether there is such a resource.
func (g *Generator) cross(r *sim.Request, at, asked, peer int) bool {
	if asked == peer {
		return false
	}
	from := g.created
	if g.work(4) == 3 {
		from = g.work(len(g.targets.skewed))
	}
	for _, steps := range [2]int{at + g.work(2), at} { // after the step, or else before it
		for i := range g.targets.skewed {
			one := &g.targets.skewed[(from+i)%len(g.targets.skewed)]
			if one.served.has(g.versionAfter(steps, peer)) && !one.served.has(g.versionAfter(r.Step, asked)) {
				r.GVR, r.Subresource, r.Server = one.gvr, one.subresource, g.names[asked]
				return true
			}
		}
	}
	return false
}

// meets returns two servers: a request from the first to the second meets a step. They are the same
// if the step disturbs neither a link nor a server, but the first may be any server if it changes a
// definition.
func (g *Generator) meets(s *scenario.Step) (asked, peer int) {
	if s.Definition != nil {
		asked = g.work(len(g.names))
		return asked, asked
	}
	from, to := s.Server, s.Server
	if f := g.faultOf(s); f != nil {
		from, to = f.From, f.To
	}
	asked, peer = slices.Index(g.names, from), slices.Index(g.names, to)
	switch {
	case asked < 0 && peer < 0:
		return 0, 0
	case asked < 0: // from a client
		return peer, g.otherThan(peer)
	case peer < 0: // to etcd: the server knows too little, and serves nothing
		if other := g.otherThan(asked); g.work(2) == 0 {
			return asked, other
		} else {
			return other, asked
		}
	case asked == peer: // one server
		return g.otherThan(asked), asked
	}
	return asked, peer
}

// faultOf returns the fault that a step injects or heals, or nil.
func (g *Generator) faultOf(s *scenario.Step) *fault.Fault {
	if s.Action == scenario.Heal {
		if i := slices.Index(labels[:len(g.faults)], s.Label); i >= 0 {
			return &g.faults[i]
		}
	}
	return s.Fault
}

func (g *Generator) otherThan(server int) int {
	return (server + 1 + g.work(len(g.names)-1)) % len(g.names)
}

// rarelyAnotherMediaType says that one in so many varied requests asks for another media type.
const rarelyAnotherMediaType = 32

// workChoices makes the choices for package workload.
type workChoices struct{ *tape.Tape }

func (c workChoices) IntN(n int) int { return c.Choose(tape.Workload, n) }

// chooseTarget chooses the resource and the server. In most cases the server must forward the
// request.
func (g *Generator) chooseTarget(r *sim.Request) {
	t := &g.targets
	what := &t.shared
	switch n := g.work(20); {
	case n < 13 && !(n < 4 && g.defines):
		what = &t.skewed
	case n >= 13 && n < 16:
	case n < 18:
		what = &t.extensions
	default:
		what = &t.nobody
	}
	if len(*what) == 0 {
		what = &t.nobody
	}
	one := &(*what)[g.work(len(*what))]
	r.GVR, r.Subresource = one.gvr, one.subresource
	r.Name = objects[g.work(len(objects))]
	server := g.work(len(g.names))
	if what == &t.skewed {
		server = g.serverWithout(one, r.Step, server)
	}
	r.Server = g.names[server]
	g.chooseVerb(r)
}

// serverWithout returns the first server, counting from from, that does not serve the target. In
// one of eight cases it returns from itself.
func (g *Generator) serverWithout(one *target, step, from int) int {
	if g.work(8) == 7 {
		return from
	}
	for i := range g.names {
		server := (from + i) % len(g.names)
		if !one.served.has(g.versionAfter(step, server)) {
			return server
		}
	}
	return from
}

// objects are the names of objects. There are few names, so that requests read objects that other
// requests have written.
var objects = [...]string{"x", "x", "x", anotherObject, "z"}

const anotherObject = "y"

// verbs are the verbs of resources and of subresources. Common verbs are in the list several times.
var (
	verbs = [...]string{
		"list", "list", "get", "get", "create", "create", "create", "update", "update", "patch", "patch", "delete", "watch", "watch",
		history.VerbTable, "deletecollection",
	}
	subresourceVerbs = [...]string{"get", "get", "update", "patch"}
	watchTimes       = [...]time.Duration{time.Second, 3 * time.Second, 10 * time.Second}
)

// chooseVerb chooses the verb.
func (g *Generator) chooseVerb(r *sim.Request) {
	if r.Subresource != "" {
		r.Verb = subresourceVerbs[g.work(len(subresourceVerbs))]
		return
	}
	r.Verb = verbs[g.work(len(verbs))]
	if r.Verb == "watch" {
		n := g.work(3 * len(watchTimes))
		r.For, r.Upgrade = watchTimes[n/3], n%3 == 2
	}
}
