package proxy

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// pieces is the whole state of a table, piece by piece. Unknown pieces are left out. Times are
// seconds after epoch.
func pieces(t *Table) map[string]string {
	all := map[string]string{}
	put := func(name, value string) {
		if value != "" {
			all[name] = value
		}
	}
	flag := func(name string, is bool) {
		if is {
			all[name] = "yes"
		}
	}
	seconds := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return fmt.Sprint(int(at.Sub(epoch).Seconds()))
	}
	list := func(groups discovery.Groups) string {
		var found []string
		for _, g := range groups {
			for _, v := range g.Versions {
				for _, r := range v.Resources {
					found = append(found, r.Resource)
				}
			}
		}
		return strings.Join(found, "+")
	}
	names := func(resources []Resource) string {
		var found []string
		for _, r := range resources {
			found = append(found, r.Resource)
		}
		return strings.Join(found, "+")
	}
	put("began", seconds(t.began))
	flag("synced", t.synced)
	flag("watch stalled", t.watchStalled)
	put("crashed", t.crashed)
	flag("local known", t.localKnown)
	put("local version", t.version)
	put("routed until", seconds(t.routedUntil))
	for root, d := range t.local {
		put("local "+Root(root).Path(), list(d.groups))
		put("local "+Root(root).Path()+" at", seconds(d.at))
		put("local "+Root(root).Path()+" since", seconds(d.since))
	}
	put("native here", names(t.nativeHere))
	for _, p := range t.peers {
		name := string(p.id) + " "
		all[name+"known"] = "yes"
		flag(name+"live", p.live)
		put(name+"incarnation", p.incarnation)
		put(name+"version", p.version)
		put(name+"address", p.address)
		flag(name+"direct", p.direct)
		put(name+"ejected until", seconds(p.ejected))
		put(name+"native", names(p.native))
		for root := range roots {
			put(name+root.Path(), list(p.learnt[root].groups))
			put(name+root.Path()+" at", seconds(p.learnt[root].at))
			put(name+root.Path()+" since", seconds(p.learnt[root].since))
			put(name+root.Path()+" failed", p.learnt[root].failed)
			put(name+root.Path()+" before", list(p.before[root].groups))
			put(name+root.Path()+" before, version", p.before[root].version)
		}
	}
	for _, r := range t.extensions.active {
		all["extension "+r.Resource] = "yes"
	}
	for _, r := range t.extensions.retired {
		put("retired "+r.Resource.Resource+r.Version, seconds(r.at)+"–"+seconds(r.expires))
	}
	for gvr, ids := range t.storage {
		all["storage "+gvr.Resource] = fmt.Sprint(ids)
	}
	return all
}

// Every field of a table's state is a piece, so that [TestWhatResetsWhat] sees every change, or is
// listed here with the reason why it is none. After full, a table has a value in each of them.
func TestPiecesAreTheWholeState(t *testing.T) {
	full := table(Reference(), full()...)
	for of, fields := range map[reflect.Type]map[string]string{
		reflect.TypeFor[Table](): {
			"policy": "-never changes", "self": "-never changes", "began": "began", "synced": "synced", "watchStalled": "watch stalled",
			"crashed": "-the reference never crashes", "local": "local /api", "localKnown": "local known",
			"routed": "-with LocalByInterval only", "routedUntil": "-with LocalByInterval only", "version": "local version",
			"peers": "a known", "extensions": "extension", "storage": "storage gadgets", "documents": "-see changes",
			"nativeHere": "native here",
		},
		reflect.TypeFor[peer](): {
			"id": "a known", "live": "a live", "incarnation": "a incarnation", "version": "a version", "address": "a address",
			"direct": "-see the case of a server without a proxy", "learnt": "a /api", "before": "b /api before", "ejected": "a ejected until",
			"native": "a native",
		},
		reflect.TypeFor[document](): {
			"groups": "/api", "at": "/api at", "since": "/api since", "failed": "/apis failed",
			"earlier": "-see TestWhatResetsWhatIsBuiltIn", "index": "-made from groups", "version": "before, version",
		},
		reflect.TypeFor[extensions](): {
			"policy": "-never changes", "current": "-what active is made from", "look": "-with ExtensionsFiltered only", "active": "extension", "retired": "retired widgetsv1",
		},
	} {
		for i := range of.NumField() {
			name := of.Field(i).Name
			piece, known := fields[name]
			if !known {
				t.Errorf("%s.%s is new: make it a piece, give it a value in full, and list it here", of.Name(), name)
			}
			delete(fields, name)
			if strings.HasPrefix(piece, "-") {
				continue
			}
			found := false
			for has := range pieces(full) {
				found = found || strings.Contains(has, piece)
			}
			if !found {
				t.Errorf("%s.%s: after full there is no piece %q", of.Name(), name, piece)
			}
		}
		for name := range fields {
			t.Errorf("%s has no field %s any more", of.Name(), name)
		}
	}
}

// changes returns the pieces that differ between two tables, with their values afterwards; "-"
// means that the piece is gone. "documents" is in the result if merged documents are made again.
func changes(before, after *Table) map[string]string {
	was, is := pieces(before), pieces(after)
	changed := map[string]string{}
	if before.DocumentGeneration() != after.DocumentGeneration() {
		changed["documents"] = "new"
	}
	for name, value := range is {
		if was[name] != value {
			changed[name] = value
		}
	}
	for name := range was {
		if _, ok := is[name]; !ok {
			changed[name] = "-"
		}
	}
	return changed
}

func seconds(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }

// defines makes the event that custom resources were created, and that this server sees it.
func defines(created, seen int, list ...Resource) Extensions {
	e := Extensions{At: seconds(seen), Created: map[schema.GroupVersionResource]time.Time{}}
	for _, r := range list {
		e.CustomResources = append(e.CustomResources, custom(r))
		e.Created[custom(r)] = seconds(created)
	}
	return e
}

// of makes the answers of a peer: its version, and its two documents.
func of(id ServerID, incarnation, version string, core, groups RootResult) FetchResult {
	return FetchResult{ID: id, Incarnation: incarnation, Version: version, Roots: [roots]RootResult{core, groups}}
}

func lists(apis ...Resource) RootResult { return RootResult{Groups: groups(apis...)} }

// podsOfA is one value, as a fetcher returns it again after a 304.
var podsOfA = lists(pods)

// full is a history after which a table has every piece of its state. Peer a has not restarted, but
// the last fetch of its /apis has failed. Peer b has restarted and has not answered since. Both are
// avoided. One of the extensions was deleted while both peers' documents were older than the
// deletion. Jobs became a custom resource long after all servers listed them, so they are built in
// there.
func full() []Event {
	failed := RootResult{Failed: "no connection"}
	metrics := []schema.GroupVersion{{Group: "metrics.k8s.io", Version: "v1"}}
	return slices.Concat([]Event{
		Extensions{CustomResources: []schema.GroupVersionResource{custom(widget)}, Aggregated: metrics, At: epoch},
		LocalFetched{Version: "v1.36.3", Roots: [roots]discovery.Groups{groups(pods), groups(jobs)}, At: epoch},
	}, peersLive("a", "b"), []Event{
		Fetched{At: epoch, Results: []FetchResult{
			of("a", "1", "v1.37.1", podsOfA, lists(jobs, gadget)), of("b", "1", "v1.35.4", lists(pods), lists(jobs)),
		}},
		Fetched{At: seconds(2), Results: []FetchResult{of("a", "1", "v1.37.1", podsOfA, failed)}},
		Extensions{Aggregated: metrics, At: seconds(3)},
		Synced{},
		Extensions{
			CustomResources: []schema.GroupVersionResource{custom(jobs)}, Created: map[schema.GroupVersionResource]time.Time{custom(jobs): seconds(11)},
			Aggregated: metrics, At: seconds(11),
		},
		PeerAppeared{ID: "b", Incarnation: "2"},
		StorageVersions{Served: map[schema.GroupVersionResource][]ServerID{custom(gadget): {"a"}}},
		LeaseWatch{Stalled: true},
		PeerFailed{ID: "a", At: seconds(12)},
		PeerFailed{ID: "b", At: seconds(12)},
	})
}

// Every event changes the pieces that it is about and no other pieces. Pieces that a case does not
// name must stay. If a piece is wrongly kept, the table is stale. If a piece is wrongly forgotten,
// clients get a 503.
func TestWhatResetsWhat(t *testing.T) {
	failed := func(why string) RootResult { return RootResult{Failed: why} }
	for _, c := range []struct {
		name  string
		event Event
		want  map[string]string
	}{
		{"the lease of a peer as it was", PeerAppeared{"a", "1"}, nil},
		{"a peer restarts", PeerAppeared{"a", "2"}, map[string]string{
			"a incarnation": "2", "a version": "-", "a ejected until": "-",
			"a /api": "-", "a /api at": "-", "a /api since": "-", "a /api before": "pods", "a /api before, version": "v1.37.1",
			"a /apis": "-", "a /apis at": "-", "a /apis since": "-", "a /apis failed": "-", "a /apis before": "jobs+gadgets", "a /apis before, version": "v1.37.1",
		}},
		{"a peer restarts again before it has answered", PeerAppeared{"b", "3"}, map[string]string{"b incarnation": "3", "b ejected until": "-"}},
		{"a new peer", PeerAppeared{"c", "1"}, map[string]string{"c known": "yes", "c live": "yes", "c incarnation": "1"}},
		{"the lease of the server itself", PeerAppeared{"self", "2"}, nil},
		{"a peer leaves", PeerGone{"a"}, map[string]string{
			"a known": "-", "a live": "-", "a incarnation": "-", "a version": "-", "a address": "-", "a ejected until": "-",
			"a /api": "-", "a /api at": "-", "a /api since": "-", "a /apis": "-", "a /apis at": "-", "a /apis since": "-", "a /apis failed": "-", "a native": "-", "documents": "new",
		}},
		{"a peer leaves that has not answered since it restarted", PeerGone{"b"}, map[string]string{
			"b known": "-", "b live": "-", "b incarnation": "-", "b address": "-", "b ejected until": "-",
			"b /api before": "-", "b /api before, version": "-", "b /apis before": "-", "b /apis before, version": "-", "b native": "-", "documents": "new",
		}},
		{"an unknown peer leaves", PeerGone{"c"}, nil},
		{"a peer moves", PeerAddress{ID: "a", Address: "a:7443"}, map[string]string{"a address": "a:7443", "a ejected until": "-"}},
		{"a peer's address is no longer known", PeerAddress{ID: "a", Address: ""}, map[string]string{"a address": "-", "a ejected until": "-"}},
		{"a server without a proxy is at a peer's address", PeerAddress{ID: "a", Address: "a:6443", Direct: true}, map[string]string{"a direct": "yes", "a ejected until": "-"}},
		{"a peer's address as it was", PeerAddress{ID: "a", Address: "a:6443"}, nil},
		{"no address of an unknown peer", PeerAddress{ID: "c", Address: ""}, nil},
		{"an address of an unknown peer", PeerAddress{ID: "c", Address: "c:1"}, map[string]string{"c known": "yes", "c address": "c:1"}},
		{"an address of the server itself", PeerAddress{ID: "self", Address: "c:1"}, nil},
		{"a peer fails", PeerFailed{"a", seconds(20)}, map[string]string{"a ejected until": "25"}},
		{"an unknown peer fails", PeerFailed{"c", seconds(20)}, nil},
		{"a peer answers", PeerAnswered{"a"}, map[string]string{"a ejected until": "-"}},
		{"an unknown peer answers", PeerAnswered{"c"}, nil},
		{"fetched from a peer whose fetch had failed", Fetched{At: seconds(20), Results: []FetchResult{of("a", "1", "v1.37.2", lists(pods), lists(jobs))}}, map[string]string{
			"a version": "v1.37.2", "a /api at": "20", "a /api since": "20", "a /apis": "jobs", "a /apis at": "20", "a /apis since": "20", "a /apis failed": "-", "documents": "new",
		}},
		{"fetched the same again", Fetched{At: seconds(20), Results: []FetchResult{of("a", "1", "v1.37.1", podsOfA, failed("no connection"))}}, map[string]string{
			"a /api at": "20", "documents": "new",
		}},
		{"fetched from a restarted peer", Fetched{At: seconds(20), Results: []FetchResult{of("b", "2", "v1.36.3", lists(pods), lists(jobs))}}, map[string]string{
			"b version": "v1.36.3", "b /api": "pods", "b /api at": "20", "b /api since": "20", "b /api before": "-", "b /api before, version": "-",
			"b /apis": "jobs", "b /apis at": "20", "b /apis since": "20", "b /apis before": "-", "b /apis before, version": "-", "b native": "-", "documents": "new",
		}},
		{"one document fetched from a restarted peer", Fetched{At: seconds(20), Results: []FetchResult{of("b", "2", "v1.36.3", lists(pods), failed("EOF"))}}, map[string]string{
			"b version": "v1.36.3", "b /api": "pods", "b /api at": "20", "b /api since": "20", "b /api before": "-", "b /api before, version": "-",
			"b /apis failed": "EOF", "documents": "new",
		}},
		{"fetched from the process before", Fetched{At: seconds(20), Results: []FetchResult{of("b", "1", "v1.35.4", lists(pods), lists(gadget))}}, nil},
		{"fetched so late that no document is older than the deletion", Fetched{At: seconds(6), Results: []FetchResult{
			of("a", "1", "v1.37.1", lists(pods), lists(jobs, gadget)), of("b", "2", "v1.35.4", lists(pods), lists(jobs))}}, map[string]string{
			"a /api at": "6", "a /api since": "6", "a /apis at": "6", "a /apis since": "6", "a /apis failed": "-",
			"b version": "v1.35.4", "b /api": "pods", "b /api at": "6", "b /api since": "6", "b /api before": "-", "b /api before, version": "-",
			"b /apis": "jobs", "b /apis at": "6", "b /apis since": "6", "b /apis before": "-", "b /apis before, version": "-", "b native": "-",
			"retired widgetsv1": "-", "documents": "new",
		}},
		{"fetched a little too early for that", Fetched{At: seconds(5), Results: []FetchResult{
			of("a", "1", "v1.37.1", lists(pods), lists(jobs, gadget)), of("b", "2", "v1.35.4", lists(pods), lists(jobs))}}, map[string]string{
			"a /api at": "5", "a /api since": "5", "a /apis at": "5", "a /apis since": "5", "a /apis failed": "-",
			"b version": "v1.35.4", "b /api": "pods", "b /api at": "5", "b /api since": "5", "b /api before": "-", "b /api before, version": "-",
			"b /apis": "jobs", "b /apis at": "5", "b /apis since": "5", "b /apis before": "-", "b /apis before, version": "-", "b native": "-", "documents": "new",
		}},
		{"a version alone", Fetched{At: seconds(20), Results: []FetchResult{of("a", "1", "v1.37.2", failed("no connection"), failed("no connection"))}}, map[string]string{
			"a version": "v1.37.2", "a /api failed": "no connection", "documents": "new",
		}},
		{"the failure as before, and no version", Fetched{At: seconds(20), Results: []FetchResult{of("a", "1", "", lists(pods), failed("no connection"))}}, map[string]string{
			"a /api at": "20", "a /api since": "20", "documents": "new",
		}},
		{"another failure", Fetched{At: seconds(20), Results: []FetchResult{of("a", "1", "", failed("EOF"), failed("EOF"))}}, map[string]string{
			"a /api failed": "EOF", "a /apis failed": "EOF",
		}},
		{"fetched from a peer that is gone", Fetched{At: seconds(20), Results: []FetchResult{of("c", "1", "v1.37.1", lists(pods), lists(gadget))}}, nil},
		{"fetched from the server itself", Fetched{At: seconds(20), Results: []FetchResult{of("self", "1", "v1.37.1", lists(pods), lists(gadget))}}, nil},
		{"the local server as it was", LocalFetched{Version: "v1.36.3", Roots: [roots]discovery.Groups{groups(pods), groups(jobs)}, At: seconds(20)}, map[string]string{
			"local /api at": "20", "local /api since": "20", "local /apis at": "20", "local /apis since": "20", "documents": "new", // equal, but not the same value
		}},
		{"the local server lists something else, and says its version", LocalFetched{Version: "v1.37.1", Roots: [roots]discovery.Groups{groups(pods), groups(gadget)}, At: seconds(20)}, map[string]string{
			"local version": "v1.37.1", "local /api at": "20", "local /api since": "20", "local /apis": "gadgets", "local /apis at": "20", "local /apis since": "20",
			"documents": "new",
		}},
		{"the last extension is deleted", Extensions{At: seconds(20)}, map[string]string{"extension ": "-", "retired v1": "20–", "extension jobs": "-", "retired jobsv1": "20–", "documents": "new"}},
		{"a deleted extension returns", Extensions{CustomResources: []schema.GroupVersionResource{custom(jobs), custom(widget)}, Aggregated: []schema.GroupVersion{{Group: "metrics.k8s.io", Version: "v1"}}, At: seconds(20)},
			map[string]string{"extension widgets": "yes", "documents": "new"}},
		{"other storage versions", StorageVersions{}, map[string]string{"storage gadgets": "-"}},
		{"synced again", Synced{}, nil},
		{"leases are renewed again", LeaseWatch{}, map[string]string{"watch stalled": "-"}},
		{"time goes by", Tick{seconds(3600)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := table(Reference(), full()...)
			was := pieces(before)
			after := before.Observe(c.event)
			want := c.want
			if want == nil {
				want = map[string]string{}
			}
			got := changes(before, after)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
			if now := pieces(before); !maps.Equal(was, now) {
				t.Errorf("the table before the event has changed:\n%s", cmp.Diff(was, now))
			}
		})
	}
}
