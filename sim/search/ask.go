package search

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/sim"
)

// ask adds the requests.
func (g *Generator) ask() {
	left := g.spec.requests()
	// Discovery is asked for in few cases, and there often: it costs more than other requests, and whether all servers tell the same is seen
	// only by asking several of them, one after the other, when all is right.
	g.plan.discovers = g.work(4) == 3
	if compared := min(g.spec.Servers, left/4, 4); g.plan.discovers && compared > 1 {
		path := paths[1-g.work(4)/3]
		for i := range compared {
			g.c.Requests = append(g.c.Requests, sim.Request{
				Step: g.plan.ends, After: time.Duration(i) * 100 * time.Millisecond, Server: g.names[i],
				Request: workload.Request{Verb: history.VerbDiscovery, Path: path},
			})
		}
		left -= compared
	}
	for range left {
		g.c.Requests = append(g.c.Requests, g.request())
	}
}

// moments are how long after its step a request is sent.
var moments = [...]time.Duration{
	time.Second, 0, 10 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second, 4 * time.Second, 5500 * time.Millisecond,
	8 * time.Second, 13 * time.Second, 24 * time.Second, 40 * time.Second,
}

// callers are who asks.
var callers = workload.Users()

// request is one request.
func (g *Generator) request() sim.Request {
	var r sim.Request
	r.User, r.After = callers[g.work(len(callers))], moments[g.work(len(moments))]
	r.After += r.After / 16 * time.Duration(g.work(8))
	p := &g.plan
	switch phase := g.work(16); {
	case phase < 9: // while it is disturbed
		r.Step = p.first + g.work(p.heals-p.first+1)
	case phase < 10: // before
		r.Step = g.work(p.first + 1)
	case phase < 13: // while it recovers
		r.Step = p.heals + g.work(p.ends-p.heals)
	default: // afterwards
		r.Step = p.ends
		r.After = min(r.After, 4*time.Second)
	}
	if g.plan.discovers && g.work(5) == 4 {
		r.Verb, r.Path = history.VerbDiscovery, paths[1-g.work(4)/3]
		r.Server = g.names[g.work(len(g.names))]
		return r
	}
	g.choose(&r)
	if g.work(24) == 23 {
		r.Forged = workload.ForgedHop
	}
	return r
}

// choose says what is asked for, and of which server: mostly what it has to pass on.
func (g *Generator) choose(r *sim.Request) {
	t := &g.targets
	what := &t.shared
	switch n := g.work(20); {
	case n < 13:
		what = &t.skewed
	case n < 16:
	case n < 18:
		what = &extensions
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
	if one.older != one.newer {
		server = g.ignorant(one, r.Step, server)
	}
	r.Server = g.names[server]
	g.act(r)
}

// ignorant is the first server from one on that does not serve a target itself, mostly.
func (g *Generator) ignorant(one *target, step, from int) int {
	if g.work(8) == 7 {
		return from
	}
	for i := range g.names {
		server := (from + i) % len(g.names)
		if newer := g.plan.newerAfter(step, server); newer && !one.newer || !newer && !one.older {
			return server
		}
	}
	return from
}

// objects are the names of what is written and read: few, so that requests are about the same ones.
var objects = [...]string{"x", "y", "z"}

// verbs are what is done with a resource and with a subresource, the more usual more often.
var (
	verbs = [...]string{
		"list", "list", "get", "get", "get", "list", "create", "create", "create", "update", "patch", "delete", "watch", "watch", history.VerbTable, "deletecollection",
	}
	subverbs = [...]string{"get", "get", "update", "patch"}
	lasting  = [...]time.Duration{time.Second, 3 * time.Second, 10 * time.Second}
)

// act says what is done with it.
func (g *Generator) act(r *sim.Request) {
	if r.Subresource != "" {
		r.Verb = subverbs[g.work(len(subverbs))]
		return
	}
	r.Verb = verbs[g.work(len(verbs))]
	if r.Verb == "watch" {
		n := g.work(3 * len(lasting))
		r.For, r.Upgrade = lasting[n/3], n%3 == 2
	}
}
