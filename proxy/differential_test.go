package proxy_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/transport"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

var histories = flag.Int("histories", 60, "how many random histories to compare with upstream's")

// TestBehavesLikeUpstream drives the real upstream proxy and this package under the preset of its version through the same random
// history in virtual time: leases that come, go and change hands, addresses that are not known, peers that are cut off or fail to give one
// of their documents, retries up to the last, custom resources that come and go with their graces. After every step both must
// answer every request alike, and report the same document.
func TestBehavesLikeUpstream(t *testing.T) {
	for seed := range *histories {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if different := compareHistory(t, uint64(seed), proxy.Upstream137()); different != "" {
					t.Error(different)
				}
			})
		})
	}
}

// TestDifferencesAreSeen turns one switch of the preset at a time: if the comparison above did not see that, its silence would mean
// nothing.
func TestDifferencesAreSeen(t *testing.T) {
	for name, turn := range map[string]func(*proxy.Policy){
		"KeepLastGood":     func(p *proxy.Policy) { p.Knowledge.KeepLastGood = true },
		"DoubtUnknown":     func(p *proxy.Policy) { p.Knowledge.DoubtUnknown = true },
		"no exclusion":     func(p *proxy.Policy) { p.Knowledge.Extensions = proxy.ExtensionsIgnored },
		"exclusion of 135": func(p *proxy.Policy) { p.Knowledge.Extensions = proxy.ExtensionsCutOut },
		"exact exclusion":  func(p *proxy.Policy) { p.Knowledge.Extensions = proxy.ExtensionsExact },
		"shorter grace":    func(p *proxy.Policy) { p.Knowledge.Grace = time.Minute },
		"two attempts":     func(p *proxy.Policy) { p.Routing.Attempts = 2 },
		"Status":           func(p *proxy.Policy) { p.Routing.PlainErrors = false },
		"no merge":         func(p *proxy.Policy) { p.Discovery.Merge = false },
		"NewestFirst":      func(p *proxy.Policy) { p.Discovery.NewestFirst = true },
		"never stale":      func(p *proxy.Policy) { p.Discovery.StaleWhenAlone = false },
		"both documents":   func(p *proxy.Policy) { p.Fetching.LastErrorOnly = false },
		"fewer retries":    func(p *proxy.Policy) { p.Fetching.Retries = 3 },
		"quicker retries":  func(p *proxy.Policy) { p.Fetching.LastRetry = time.Second },
		"periodic fetches": func(p *proxy.Policy) { p.Fetching.Interval = time.Minute },
	} {
		t.Run(name, func(t *testing.T) {
			policy := proxy.Upstream137()
			turn(&policy)
			for seed := range 400 {
				different := ""
				synctest.Test(t, func(t *testing.T) { different = compareHistory(t, uint64(seed), policy) })
				if different != "" {
					t.Logf("seen in history %d", seed)
					return
				}
			}
			t.Error("400 histories, and nobody noticed")
		})
	}
}

// pool is what servers may serve. The last two are custom resources where a definition exists.
var pool = []proxy.Resource{
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "things"},
	{Group: "batch", Version: "v1", Resource: "jobs"},
	{Group: "batch", Version: "v1beta1", Resource: "jobs"},
	{Group: "batch", Version: "v1", Resource: "runs"},
	{Group: "new.k8s.io", Version: "v1", Resource: "gadgets"},
	{Group: "new.k8s.io", Version: "v1alpha1", Resource: "gadgets"},
	{Group: "old.k8s.io", Version: "v1", Resource: "relics"},
	{Group: "example.com", Version: "v1", Resource: "widgets"},
	{Group: "example.com", Version: "v2", Resource: "widgets"},
}

// documentOf renders a choice of resources as the documents of the two roots. order turns the groups around, as servers of different
// versions list them differently.
func documentOf(resources []proxy.Resource, turned bool) [2]discovery.Groups {
	var documents [2]discovery.Groups
	for _, r := range resources {
		d := &documents[1]
		if r.Group == "" {
			d = &documents[0]
		}
		g := slices.IndexFunc(*d, func(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == r.Group })
		if g < 0 {
			g = len(*d)
			*d = append(*d, apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: r.Group}})
		}
		group := &(*d)[g]
		v := slices.IndexFunc(group.Versions, func(v apidiscoveryv2.APIVersionDiscovery) bool { return v.Version == r.Version })
		if v < 0 {
			v = len(group.Versions)
			group.Versions = append(group.Versions, apidiscoveryv2.APIVersionDiscovery{Version: r.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent})
		}
		group.Versions[v].Resources = append(group.Versions[v].Resources, apidiscoveryv2.APIResourceDiscovery{
			Resource: r.Resource, ResponseKind: &metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Resource},
			Scope: apidiscoveryv2.ScopeNamespace, SingularResource: strings.TrimSuffix(r.Resource, "s"), Verbs: []string{"get", "list"},
		})
	}
	if turned {
		slices.Reverse(documents[1])
	}
	return documents
}

// compareHistory returns the first difference in the history of a seed, or "".
func compareHistory(t *testing.T, seed uint64, policy proxy.Policy) string {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	some := func() [2]discovery.Groups {
		var chosen []proxy.Resource
		for _, r := range pool {
			if random.IntN(3) > 0 {
				chosen = append(chosen, r)
			}
		}
		return documentOf(chosen, random.IntN(4) == 0)
	}
	w := &world{peers: map[string]*worldPeer{}}
	w.local = documentOf(pool[:random.IntN(6)+1], false)
	ids := []string{"peer-a", "peer-b", "peer-c"}
	for i, id := range ids {
		w.peers[fmt.Sprintf("%s:%d", id, 6443+i)] = &worldPeer{id: id, serves: some()}
	}
	addresses := slices.Sorted(maps.Keys(w.peers))

	ctx, cancel := context.WithCancel(t.Context())
	defer func() { cancel(); synctest.Wait() }()
	client := fake.NewClientset()
	objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{crdResource: "CustomResourceDefinitionList"})
	theirs := newUpstream(ctx, t, "self", w, &transport.Config{WrapTransport: func(http.RoundTripper) http.RoundTripper { return w }}, client, objects)
	synctest.Wait()
	ours := newSubject(ctx, t, policy, w)

	holders, definitions := map[string]int{}, map[string][]string{}
	leases := client.CoordinationV1().Leases(metav1.NamespaceSystem)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// Upstream ends a grace when more than the grace has passed, and looks exactly when it has: on a clock that stands still meanwhile that is
	// never. So an unrelated definition is touched in every step, which makes it look again.
	unrelated, err := objects.Resource(crdResource).Create(ctx, crd("unrelated.example", "unrelated", "v1"), metav1.CreateOptions{})
	must(err)
	var history []string
	for step := range 30 {
		i := random.IntN(len(ids))
		id, address := ids[i], addresses[i]
		p := w.peers[address]
		var did string
		switch random.IntN(11) {
		case 0, 1:
			if holders[id] == 0 {
				holders[id] = 1
				did = id + " appears"
				_, err := leases.Create(ctx, identityLease(id, "1"), metav1.CreateOptions{})
				must(err)
				ours.appeared(id, "1")
			} else {
				holders[id]++
				did = id + " restarts"
				_, err := leases.Update(ctx, identityLease(id, fmt.Sprint(holders[id])), metav1.UpdateOptions{})
				must(err)
				ours.appeared(id, fmt.Sprint(holders[id]))
			}
		case 2:
			if holders[id] > 0 {
				holders[id] = 0
				did = id + " leaves"
				must(leases.Delete(ctx, id, metav1.DeleteOptions{}))
				ours.gone(id)
			}
		case 3, 4:
			known := random.IntN(4) > 0
			did = fmt.Sprintf("address of %s known: %t", id, known)
			theirs.endpoints.set(id, map[bool]string{true: address}[known])
			ours.address(id, map[bool]string{true: address}[known])
		case 5:
			w.change(func() { p.cut = !p.cut })
			did = fmt.Sprintf("%s cut: %t", id, p.cut)
		case 6:
			root := random.IntN(2)
			w.change(func() { p.down[root] = !p.down[root] })
			did = fmt.Sprintf("%s fails to give %s: %t", id, roots[root], p.down[root])
		case 7:
			served := some()
			w.change(func() { p.serves = served })
			did = id + " serves something else"
		case 8:
			versions := [][]string{nil, {"v1"}, {"v2"}, {"v1", "v2"}}[random.IntN(4)]
			did = fmt.Sprintf("definition with versions %v", versions)
			changeDefinition(ctx, t, objects, definitions["example.com"], versions)
			definitions["example.com"] = versions
			ours.defined(versions)
		default:
			d := []time.Duration{20 * time.Millisecond, time.Second, 30 * time.Second, 2 * time.Minute, 6 * time.Minute, time.Hour}[random.IntN(6)]
			did = d.String() + " pass"
			time.Sleep(d)
		}
		synctest.Wait()
		time.Sleep(time.Millisecond) // nothing happens at the very same instant
		unrelated.SetGeneration(int64(step))
		_, err := objects.Resource(crdResource).Update(ctx, unrelated, metav1.UpdateOptions{})
		must(err)
		synctest.Wait()
		history = append(history, did)
		if different := difference(t, theirs, ours); different != "" {
			return different + "\nafter:\n" + strings.Join(history, "\n")
		}
	}
	return ""
}

func changeDefinition(ctx context.Context, t *testing.T, objects *dynamicfake.FakeDynamicClient, before, after []string) {
	t.Helper()
	definitions := objects.Resource(crdResource)
	object := crd("example.com", "widgets", after...)
	var err error
	switch {
	case len(before) == 0 && len(after) == 0:
	case len(before) == 0:
		_, err = definitions.Create(ctx, object, metav1.CreateOptions{})
	case len(after) == 0:
		err = definitions.Delete(ctx, object.GetName(), metav1.DeleteOptions{})
	default:
		_, err = definitions.Update(ctx, object, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// difference asks both for everything. Upstream chooses among capable peers at random: its answer must be one that ours could give.
func difference(t *testing.T, theirs *upstream, ours *subject) string {
	t.Helper()
	for _, r := range pool {
		code, kind, body := ask(theirs.handler, r)
		want := fmt.Sprintf("%d %s %s", code, kind, body)
		var could []string
		for choice := range 3 {
			ours.choice = choice
			code, kind, body := ask(ours.handler, r)
			could = append(could, fmt.Sprintf("%d %s %s", code, kind, body))
		}
		if !slices.Contains(could, want) {
			return fmt.Sprintf("%v: upstream answers %q, ours could %q", r, want, slices.Compact(could))
		}
	}
	if want, got := mergedDocument(t, theirs.merged), mergedDocument(t, ours.handler); want != got {
		return fmt.Sprintf("upstream reports\n%s\nours\n%s", want, got)
	}
	return ""
}
