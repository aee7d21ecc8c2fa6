package proxy_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy"
)

// step makes one random change. Steps that take time compare the implementations during that time.
func (p *past) step() (did, different string) {
	i := p.random.IntN(len(p.ids))
	id := p.ids[i]
	peer := p.w.peers[address(i)]
	switch p.random.IntN(24) {
	case 0, 1, 2:
		return p.appears(id), ""
	case 3:
		return p.leaves(id), ""
	case 4, 5:
		return p.publishes(id, oneOf(p.random, []string{"", address(i), address(i), moved(i)})), ""
	case 6, 7:
		p.w.change(func() { peer.cut = !peer.cut && oneIn(p.random, 2) })
		return fmt.Sprintf("%s cut: %t", id, peer.cut), ""
	case 8, 9:
		root, how := p.random.IntN(3)/2, p.random.IntN(len(failures))
		p.w.change(func() {
			if peer.down[root] == nil {
				peer.down[root] = failures[how]
			} else {
				peer.down[root] = nil
			}
		})
		return fmt.Sprintf("%s fails (%d) to give %s: %t", id, how, roots[root], peer.down[root] != nil), ""
	case 10:
		served, version := someOf(p.random, pool, false), oneOf(p.random, versions)
		switch what := p.random.IntN(4); what {
		case 0, 1: // one document changes alone
			p.w.change(func() { peer.serves[what] = served[what] })
			return fmt.Sprintf("%s serves something else at %s", id, roots[what]), ""
		case 2:
			p.w.change(func() { peer.version = version })
			return fmt.Sprintf("%s says that it is %q", id, version), ""
		default:
			p.w.change(func() { peer.serves, peer.version = served, version })
			return fmt.Sprintf("%s serves something else, as %q", id, version), ""
		}
	case 11:
		how := p.random.IntN(2 * len(manners))
		p.w.change(func() {
			peer.manner = nil
			if how < len(manners) {
				peer.manner = manners[how]
			}
		})
		return fmt.Sprintf("%s answers in manner %d", id, how), ""
	case 12, 13:
		return p.defines(oneOf(p.random, p.definitions)), ""
	case 14:
		return p.aggregates(schema.GroupVersion{Group: "metrics.example.com", Version: oneOf(p.random, []string{"v1", "v1beta1"})}), ""
	case 15:
		p.begin()
		return "the local server restarts", ""
	case 16:
		return p.fetchesSlowly(id)
	case 17, 18:
		return p.answersSlowly()
	case 19:
		return p.comesAndGoes(), ""
	}
	d := oneOf(p.random, []time.Duration{20 * time.Millisecond, time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 6 * time.Minute, time.Hour})
	time.Sleep(d)
	return d.String() + " pass", ""
}

// appears makes a peer's identity lease, or changes its holder.
func (p *past) appears(id string) string {
	p.holders[id]++
	lease := identityLease(id, fmt.Sprint(p.holders[id]))
	if p.holders[id] == 1 {
		p.must(p.leases().Create(p.Context(), lease, metav1.CreateOptions{}))
		return id + " appears"
	}
	p.must(p.leases().Update(p.Context(), lease, metav1.UpdateOptions{}))
	return id + " restarts"
}

func (p *past) leaves(id string) string {
	if p.holders[id] == 0 {
		return id + " is not there"
	}
	p.holders[id] = 0
	p.must(nil, p.leases().Delete(p.Context(), id, metav1.DeleteOptions{}))
	return id + " leaves"
}

func (p *past) publishes(id, address string) string {
	p.addresses[id] = address
	p.theirs.endpoints.set(id, address)
	p.ours.address(id, address)
	return fmt.Sprintf("address of %s: %q", id, address)
}

// defines changes a CustomResourceDefinition at random.
func (p *past) defines(d *definition) string {
	after := *d
	after.versions, after.hidden, after.accepted = nil, nil, !oneIn(p.random, 5)
	for _, v := range d.pool {
		if !oneIn(p.random, 3) {
			after.versions = append(after.versions, v)
			if oneIn(p.random, 5) {
				after.hidden = append(after.hidden, v)
			}
		}
	}
	p.redefine(d, after)
	return fmt.Sprintf("%s.%s is defined with versions %v, without %v, accepted: %t", d.plural, d.group, d.versions, d.hidden, d.accepted)
}

// comesAndGoes lets two definitions exist for so long that the implementations fetch the local
// server's list with both of them in it. Then it deletes them one after the other.
func (p *past) comesAndGoes() string {
	first := p.random.IntN(len(p.definitions))
	two := []*definition{p.definitions[first], p.definitions[(first+1)%len(p.definitions)]}
	for _, d := range two {
		after := *d
		after.versions, after.hidden, after.accepted = d.pool, nil, true
		p.redefine(d, after)
	}
	time.Sleep(31 * time.Minute)
	for _, d := range two {
		after := *d
		after.versions = nil
		p.redefine(d, after)
		time.Sleep(time.Minute)
	}
	time.Sleep(4*time.Minute + time.Second)
	return fmt.Sprintf("%s and %s are defined for half an hour, and go", two[0].plural, two[1].plural)
}

func (p *past) redefine(d *definition, after definition) {
	before := *d
	if slices.Equal(before.versions, after.versions) && slices.Equal(before.served(), after.served()) {
		return // upstream looks for ended graces at any change of the object, even at a change that means nothing
	}
	*d = after
	definitions := p.objects.Resource(crdResource)
	object := crd(d.group, d.plural, d.versions, d.hidden, d.accepted)
	switch {
	case len(before.versions) == 0:
		p.must(definitions.Create(p.Context(), object, metav1.CreateOptions{}))
	case len(d.versions) == 0:
		p.must(nil, definitions.Delete(p.Context(), object.GetName(), metav1.DeleteOptions{}))
	default:
		p.must(definitions.Update(p.Context(), object, metav1.UpdateOptions{}))
	}
	p.lists()
}

// aggregates changes an APIService.
func (p *past) aggregates(gv schema.GroupVersion) string {
	before := p.services[gv]
	after := oneOf(p.random, []string{"", "remote", "stale", "local"})
	isRemote := func(how string) bool { return how == "remote" || how == "stale" }
	if !isRemote(before) && !isRemote(after) {
		after = before
	}
	services := p.objects.Resource(serviceResource)
	object := apiService(gv.Group, gv.Version, isRemote(after))
	switch {
	case before == after, isRemote(before) && isRemote(after):
	case before == "":
		p.must(services.Create(p.Context(), object, metav1.CreateOptions{}))
	case after == "":
		p.must(nil, services.Delete(p.Context(), object.GetName(), metav1.DeleteOptions{}))
	default:
		p.must(services.Update(p.Context(), object, metav1.UpdateOptions{}))
	}
	p.services[gv] = after
	p.lists()
	return fmt.Sprintf("APIService of %s: %s", gv, after)
}

// lists makes the local server list the extensions that exist.
func (p *past) lists() {
	custom := map[schema.GroupVersion][]string{}
	for _, d := range p.definitions {
		for _, v := range d.served() {
			gv := schema.GroupVersion{Group: d.group, Version: v}
			custom[gv] = append(custom[gv], d.plural)
			slices.Sort(custom[gv])
		}
	}
	p.local.define(custom)
	remote, stale := map[schema.GroupVersion]bool{}, map[schema.GroupVersion]bool{}
	for gv, how := range p.services {
		remote[gv], stale[gv] = how == "remote" || how == "stale", how == "stale"
	}
	p.local.aggregate(remote, stale)
	if p.ours != nil {
		p.ours.sources.RefreshLocal()
	}
}

// fetchesSlowly restarts a peer while fetches of documents are slow. It compares the
// implementations in the middle of a round of fetches.
func (p *past) fetchesSlowly(id string) (did, different string) {
	slow := oneOf(p.random, []time.Duration{time.Second, 3 * time.Second, 6 * time.Second})
	p.w.change(func() { p.w.slow = slow })
	did = p.appears(id) + ", while documents take " + slow.String()
	time.Sleep(slow + slow/2)
	synctest.Wait()
	different = p.difference()
	time.Sleep(10 * slow)
	p.w.change(func() { p.w.slow = 0 })
	time.Sleep(slow)
	return did, different
}

// answersSlowly makes the answers of peers slow. It sends each implementation the same request
// twice at the same time, for something that a peer serves, if there is such a thing.
func (p *past) answersSlowly() (did, different string) {
	lag := oneOf(p.random, []time.Duration{12 * time.Second, 30 * time.Second, 30 * time.Second})
	q := plain(oneOf(p.asking, p.passedOn()))
	q.method = oneOf(p.asking, []string{http.MethodGet, http.MethodPost, http.MethodPost})
	if oneIn(p.asking, 4) {
		q.limit = 5 * time.Second
	}
	did = fmt.Sprintf("%s %s, while answers take %s", q.method, q.target, lag)

	p.w.change(func() { p.w.lag = lag })
	handlers := append([]http.Handler{p.handlers.theirs}, p.handlers.ours...)
	got := make([][2]*exchange, len(handlers))
	var all sync.WaitGroup
	for i, h := range handlers {
		for j := range got[i] {
			all.Go(func() { got[i][j] = q.send(h) })
		}
	}
	all.Wait()
	p.w.change(func() { p.w.lag = 0 })
	for _, ours := range got[1:] {
		if !ours[0].equal(ours[1]) {
			return did, fmt.Sprintf("%s\nours answers the same request with\n%s\nand\n%s", q, ours[0], ours[1])
		}
	}
	for _, theirs := range got[0] {
		var ours []*exchange
		for i := range p.handlers.ours {
			ours = append(ours, got[i+1][0])
		}
		if different := p.among(q, theirs, ours); different != "" {
			return did, different
		}
	}
	return did, ""
}

// passedOn returns the resources that upstream gets from a peer now; all resources if there are
// none.
func (p *past) passedOn() []proxy.Resource {
	var found []proxy.Resource
	for _, r := range pool {
		if x := plain(r).send(p.handlers.theirs); len(x.there) == 1 && x.there[0].by != "" {
			found = append(found, r)
		}
	}
	if found == nil {
		return pool
	}
	return found
}
