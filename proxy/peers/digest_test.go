package peers

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

func groupsOf(names ...string) (groups discovery.Groups) {
	for _, n := range names {
		groups = append(groups, apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: n}})
	}
	return groups
}

func localOf(core, groups discovery.Groups) proxy.LocalFetched {
	f := proxy.LocalFetched{Version: "v1.37.1", At: epoch}
	f.Roots[proxy.RootCore], f.Roots[proxy.RootGroups] = core, groups
	return f
}

// Two servers that serve the same must have the same digest after a restart. A server that serves
// something else must have another digest.
func TestDigest(t *testing.T) {
	store := proxy.NewStore(proxy.Reference(), "a")
	digest := Digester(store)
	if got := digest(); got != "" {
		t.Fatalf("digest %q of unknown documents", got)
	}
	seen := map[string]string{}
	for _, of := range []struct {
		name         string
		core, groups discovery.Groups
	}{
		{"nothing", nil, nil}, {"a core", groupsOf(""), nil}, {"the same at the other root", nil, groupsOf("")},
		{"two groups", nil, groupsOf("apps", "batch")}, {"in another order", nil, groupsOf("batch", "apps")},
	} {
		store.Observe(localOf(of.core, of.groups))
		got := digest()
		if other, ok := seen[got]; ok || got == "" {
			t.Errorf("%s has the digest %q of %s", of.name, got, other)
		}
		seen[got] = of.name
	}
	store.Observe(localOf(nil, groupsOf("apps", "batch")))
	if got := seen[digest()]; got != "two groups" {
		t.Errorf("the same groups again have the digest of %q", got)
	}
}

// An answer has a digest if it has both documents. The digest is the one that the server itself
// publishes, and does not depend on earlier knowledge.
func TestDigestOfAnAnswer(t *testing.T) {
	core, groups, other := groupsOf(""), groupsOf("apps"), groupsOf("batch")
	got, failed := func(g discovery.Groups) proxy.RootResult { return proxy.RootResult{Groups: g} }, proxy.RootResult{Failed: "no"}
	published := digestOf(core, groups)
	kept := lastAnswer{digest: "kept", answer: &answer{Roots: [2]proxy.RootResult{got(core), got(groups)}}}
	for name, c := range map[string]struct {
		roots  [2]proxy.RootResult
		before lastAnswer
		want   string
	}{
		"both documents":               {[2]proxy.RootResult{got(core), got(groups)}, lastAnswer{answer: &answer{}}, published},
		"neither document":             {[2]proxy.RootResult{failed, failed}, kept, ""},
		"the core group is missing":    {[2]proxy.RootResult{failed, got(groups)}, kept, ""},
		"the groups are missing":       {[2]proxy.RootResult{got(core), failed}, kept, ""},
		"both are the same as before":  {[2]proxy.RootResult{got(core), got(groups)}, kept, "kept"},
		"the core group is another":    {[2]proxy.RootResult{got(other), got(groups)}, kept, digestOf(other, groups)},
		"the groups are others":        {[2]proxy.RootResult{got(core), got(other)}, kept, digestOf(core, other)},
		"before, there was no digest":  {[2]proxy.RootResult{got(core), got(groups)}, lastAnswer{answer: kept.answer}, published},
		"nothing is listed, as before": {[2]proxy.RootResult{}, lastAnswer{digest: "kept", answer: &answer{}}, "kept"},
	} {
		if digest := (&answer{Roots: c.roots}).digest(c.before); digest != c.want {
			t.Errorf("%s: digest %q, want %q", name, digest, c.want)
		}
	}
}

func TestPublisherTellsWhatIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := publish(t, func(p *publishing) { p.publisher.Serves = p.serves.Load })
		if got := p.lease(t).Annotations[ServesAnnotation]; got != "" {
			t.Fatalf("it says %q, before anything is known", got)
		}
		p.serves.Store("one")
		time.Sleep(time.Second) // a renewal is not due yet
		if got := p.lease(t).Annotations[ServesAnnotation]; got != "one" {
			t.Fatalf("it says %q, want one", got)
		}
		lease, _, err := readEndpointLease(p.lease(t))
		if err != nil || lease.Serves != "one" {
			t.Fatalf("a peer reads %q (%v), want one", lease.Serves, err)
		}
		p.serves.Store("")
		time.Sleep(time.Second)
		if got, ok := p.lease(t).Annotations[ServesAnnotation]; ok {
			t.Fatalf("digest %q of documents that are no longer known", got)
		}
		p.stop()
		<-p.ended
	})
}

func TestRosterTellsOfAnotherDigest(t *testing.T) {
	s := newScript(RosterConfig{})
	publish := func(holder, serves string) []proxy.Event {
		s.now = s.now.Add(time.Second)
		s.Endpoint(EndpointLease{ID: "p", Holder: holder, Renewed: s.now, Duration: leaseDuration, Address: "192.0.2.1:1", Serves: serves}, s.now)
		return s.Changes()
	}
	changed := []proxy.Event{proxy.PeerChanged{ID: "p"}}
	for _, step := range []struct {
		name, holder, serves string
		want                 []proxy.Event
	}{
		{"at first", "i1", "one", []proxy.Event{appeared("i1"), addressed("192.0.2.1:1")}},
		{"the same again", "i1", "one", nil},
		{"another", "i1", "two", changed},
		{"none", "i1", "", nil},
		{"the one from before", "i1", "two", nil},
		{"none once more", "i1", "", nil},
		{"another than before that", "i1", "four", changed},
		{"another process with another", "i2", "three", append([]proxy.Event{appeared("i2")}, changed...)},
	} {
		if diff := cmp.Diff(step.want, publish(step.holder, step.serves)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

// A fetch may have seen a temporary state while the watch had stalled. Then the lease still has the
// earlier digest.
func TestRosterReportsDigestUnlikeFetched(t *testing.T) {
	s := newScript(RosterConfig{})
	renew := func(later time.Duration) []proxy.Event {
		s.now = s.now.Add(later)
		s.Endpoint(EndpointLease{ID: "p", Holder: "i1", Renewed: s.now, Duration: leaseDuration, Address: "192.0.2.1:1", Serves: "one"}, s.now)
		return s.Changes()
	}
	renew(0)
	changed := []proxy.Event{proxy.PeerChanged{ID: "p"}}
	for _, step := range []struct {
		name, fetched string
		later         time.Duration
		want          []proxy.Event
	}{
		{"nothing", "", time.Second, nil},
		{"the same", "one", time.Second, nil},
		{"something else", "two", time.Second, changed},
		{"something else still", "two", time.Second, changed},
		{"something else, and the lease was not renewed", "two", 0, nil},
		{"the same again", "one", time.Second, nil},
		{"half of it", "", time.Second, nil},
	} {
		s.Fetched("p", step.fetched, "", false)
		s.Fetched("nobody", "two", "", false)
		if diff := cmp.Diff(step.want, renew(step.later)); diff != "" {
			t.Errorf("%s was fetched (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestScheduleWhenTold(t *testing.T) {
	asked := func(change func(*proxy.Policy), tell proxy.ServerID) int {
		policy := proxy.Reference()
		change(&policy)
		s := NewSchedule(policy, func() float64 { return 0 })
		s.lease("a", epoch)
		for _, r := range s.Due(epoch) {
			s.Finished(r, false, epoch)
		}
		now := epoch.Add(time.Second)
		s.Learn(proxy.PeerChanged{ID: tell}, now)
		return len(s.Due(now))
	}
	for _, tc := range []struct {
		name   string
		change func(*proxy.Policy)
		of     proxy.ServerID
		want   int
	}{
		{"a peer", func(*proxy.Policy) {}, "a", 1},
		{"an unknown server", func(*proxy.Policy) {}, "b", 0},
		{"without the switch", func(p *proxy.Policy) { p.Fetching.WhenTold = false }, "a", 0},
		{"where rounds go through all peers", func(p *proxy.Policy) { p.Fetching.OnlyChanged = false }, "a", 0},
	} {
		if got := asked(tc.change, tc.of); got != tc.want {
			t.Errorf("%s reports a change: %d rounds, want %d", tc.name, got, tc.want)
		}
	}
}
