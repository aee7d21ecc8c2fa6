package proxy_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/transport"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// past is one random history. Both implementations live through it.
type past struct {
	*testing.T
	random, asking *rand.Rand // for the events, and for the requests
	policy         proxy.Policy
	allowed        []listed

	w         *world
	client    *fake.Clientset
	objects   *dynamicfake.FakeDynamicClient
	ids       []string
	addresses map[string]string // of the peers that publish an address
	holders   map[string]int    // of the identity leases that exist

	definitions []*definition
	services    map[schema.GroupVersion]string // "remote", "stale" or "local"

	local    *process
	stop     func()
	theirs   *upstream
	ours     *subject
	handlers struct {
		theirs http.Handler
		ours   []http.Handler
	}
	ways struct{ theirs, ours *way }
	did  []string
}

// definition is a CustomResourceDefinition.
type definition struct {
	group, plural    string
	pool             []string // versions that the definition may have
	versions, hidden []string // hidden are the versions that it has and does not serve
	accepted         bool
}

// served are the versions that are served.
func (d *definition) served() []string {
	if !d.accepted {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(d.versions), func(v string) bool { return slices.Contains(d.hidden, v) })
}

// newPast begins a history. The caller must call end.
func newPast(t *testing.T, seed uint64, policy proxy.Policy, allowed []listed) *past {
	p := &past{
		T: t, random: rand.New(rand.NewPCG(seed, 0)), asking: rand.New(rand.NewPCG(seed, 1)), policy: policy, allowed: allowed,
		w: &world{peers: map[string]*worldPeer{}}, client: newClient(), objects: newObjects(),
		ids: []string{"peer-a", "peer-b", "peer-c"}, addresses: map[string]string{}, holders: map[string]int{},
		definitions: []*definition{
			{group: "example.com", plural: "widgets", pool: []string{"v1", "v2"}},
			{group: "example.com", plural: "gizmos", pool: []string{"v1"}},
			{group: "new.k8s.io", plural: "gadgets", pool: []string{"v1"}},
		},
		services: map[schema.GroupVersion]string{},
		stop:     func() {},
	}
	for i, id := range p.ids {
		p.w.peers[address(i)] = &worldPeer{id: id, version: oneOf(p.random, versions), serves: someOf(p.random, pool, false)}
		p.w.peers[moved(i)] = p.w.peers[address(i)]
		if oneIn(p.random, 3) {
			p.w.peers[address(i)].manner = oneOf(p.random, manners)
		}
		if !oneIn(p.random, 4) {
			p.appears(id)
		}
		if !oneIn(p.random, 4) {
			p.addresses[id] = address(i)
		}
	}
	p.must(p.objects.Resource(serviceResource).Create(t.Context(), apiService("apps", "v1", false), metav1.CreateOptions{}))
	p.begin()
	return p
}

func address(i int) string { return fmt.Sprintf("peer-%c:6443", 'a'+i) }

// moved is another address of the same peer.
func moved(i int) string { return fmt.Sprintf("peer-%c.moved:7443", 'a'+i) }

// versions are the versions that peers report; "" is none. Upstream does not ask for the version.
var versions = []string{"v1.37.1", "v1.37.1", "v1.36.3", "v1.38.0-alpha.1+dirty", "nonsense", ""}

// begin starts a new process of the local server, and starts both implementations again.
func (p *past) begin() {
	p.Helper()
	p.end()
	later := p.withhold()
	ctx, cancel := context.WithCancel(p.Context())
	p.stop = cancel
	p.w.local = someOf(p.random, pool[:p.random.IntN(extensionsFrom)+1], true)
	p.local = newProcess(p.w.local)
	p.lists()
	p.ways.theirs, p.ways.ours = &way{world: p.w, fetches: map[string]int{}}, &way{world: p.w, fetches: map[string]int{}}
	to := &transport.Config{WrapTransport: func(http.RoundTripper) http.RoundTripper { return p.ways.theirs }}
	p.theirs = startUpstream(ctx, p.T, "self", p.local, to, p.addresses, p.client, p.objects)
	p.ours = startSubject(ctx, p.T, p.policy, p.local, p.ways.ours, p.addresses, p.client, p.objects)
	p.theirs.wait()
	time.Sleep(time.Second)
	for _, lease := range later {
		p.must(p.leases().Create(p.Context(), lease, metav1.CreateOptions{}))
		time.Sleep(time.Millisecond)
	}
	p.handlers.theirs, p.handlers.ours = behindFilters(p.theirs.handler), nil
	for _, h := range p.ours.handlers {
		p.handlers.ours = append(p.handlers.ours, behindFilters(h))
	}
}

// withhold deletes all identity leases except one and returns them. The reason is a race, in
// upstream and here: if several leases exist when an informer starts, a round of fetches sees any
// number of them.
func (p *past) withhold() []*coordinationv1.Lease {
	var withheld []*coordinationv1.Lease
	for _, id := range slices.Sorted(maps.Keys(p.holders)) {
		if p.holders[id] > 0 {
			withheld = append(withheld, identityLease(id, fmt.Sprint(p.holders[id])))
		}
	}
	if len(withheld) == 0 {
		return nil
	}
	for _, lease := range withheld[1:] {
		p.must(nil, p.leases().Delete(p.Context(), lease.Name, metav1.DeleteOptions{}))
	}
	return withheld[1:]
}

func (p *past) leases() coordinationclient.LeaseInterface {
	return p.client.CoordinationV1().Leases(metav1.NamespaceSystem)
}

// end stops both implementations.
func (p *past) end() {
	p.stop()
	synctest.Wait()
}

func (p *past) must(_ any, err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// pause is the time between an event and the requests. The sum of the pauses in a history is never
// equal to an interval at which something is done again. Otherwise two things would happen at the
// same instant, and their order would be random.
const pause = 1013 * time.Microsecond

// steps is the number of steps in a history.
const steps = 30

// live runs a history. It returns the first difference in it, or "".
func (p *past) live() string {
	p.Helper()
	defer p.end()
	for range steps {
		did, different := p.step()
		p.did = append(p.did, did)
		if different == "" {
			synctest.Wait()
			time.Sleep(pause)
			synctest.Wait()
			different = p.difference()
		}
		if different != "" {
			return different + "\nafter:\n" + strings.Join(p.did, "\n")
		}
	}
	return ""
}

// difference sends both implementations requests for every resource, and some random odd requests.
func (p *past) difference() string {
	for _, r := range pool {
		if r.Subresource == "" {
			if different := p.compare(plain(r)); different != "" {
				return different
			}
		}
	}
	merged := &request{method: http.MethodGet, target: "/apis", user: alice, header: http.Header{"Accept": {discovery.AcceptV2}, "Audit-Id": {"1"}}}
	if different := p.compare(merged); different != "" {
		return different
	}
	etag := merged.send(p.handlers.theirs).header.Get("ETag")
	for range 6 {
		if different := p.compare(odd(p.asking)); different != "" {
			return different
		}
	}
	for range 3 {
		if different := p.compare(oddDiscovery(p.asking, etag)); different != "" {
			return different
		}
	}
	if theirs, ours := p.ways.theirs.fetched(), p.ways.ours.fetched(); p.w.slow == 0 && !maps.Equal(theirs, ours) {
		return "fetches (-upstream +ours):\n" + cmp.Diff(theirs, ours)
	}
	return ""
}

// compare sends both implementations the same request.
func (p *past) compare(q *request) string {
	theirs := q.send(p.handlers.theirs)
	var ours []*exchange
	for _, h := range p.handlers.ours {
		ours = append(ours, q.send(h))
		if different := p.among(q, theirs, ours[len(ours)-1:]); different == "" {
			return ""
		}
	}
	return p.among(q, theirs, ours)
}

// among says how upstream's exchange differs from each of ours. Upstream chooses among capable
// peers at random, so there is one exchange of ours for each choice. Upstream's exchange must be
// equal to one of them, except for listed differences.
func (p *past) among(q *request, theirs *exchange, ours []*exchange) string {
	var could []string
	for _, x := range ours {
		if theirs.equal(x) {
			return ""
		}
		theirs, x := theirs.clone(), x.clone()
		for _, l := range p.allowed {
			l.allow(q, theirs, x)
		}
		if theirs.equal(x) {
			return ""
		}
		could = append(could, x.String())
	}
	return fmt.Sprintf("%s\nupstream answers\n%s\nours could\n%s", q, theirs, strings.Join(slices.Compact(could), "\nor\n"))
}
