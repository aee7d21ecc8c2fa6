package proxy

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// trustedAfter is a margin for documents that are fetched after an extension was deleted. A
// document proves something about the deletion only if the peer was asked this much later. Released
// kube-apiservers need less than a second to notice a deletion. If a peer needs longer, its deleted
// resource is taken for a built-in one until a document no longer lists it. Peers are asked often
// after a deletion (see Fetching.AfterChange). If the margin is too long, a resource that is built
// in there is unknown for as long.
const trustedAfter = 3 * time.Second

// doubtedAfter is how long after a deletion a peer has normally seen it. If a document from after
// that still lists the resource, and the document is too old to be trusted, then the resource may
// be built in there. Until a trusted document has come, it is unknown which is true.
const doubtedAfter = 2 * time.Second

// extensions are the custom resources and aggregated APIs that must not be taken from peers. An
// extension that exists is not taken from peers because every server serves it itself. An extension
// that was deleted is not taken from peers for a while (its grace), because a peer's document may
// be older than the deletion. extensions is immutable.
//
// An entry is either a Resource or a group version. It is a Resource for a custom resource, and a
// group version for an aggregated API. In upstream's presets, every entry is a group version.
type extensions struct {
	policy  *Policy
	current Extensions // as last observed

	active  []Resource // sorted
	retired []retired  // sorted by Resource
	look    time.Time  // next extra look for ended graces, under ExtensionsFiltered
}

// retired is an extension that was deleted.
type retired struct {
	Resource
	at      time.Time // when; zero: excluded for ever (see ExtensionsCutOut)
	expires time.Time // zero: the clock does not end the exclusion
}

// exclude reports whether a resource must not be taken from a document that was learnt at that
// time.
func (x *extensions) exclude(r Resource, learnt time.Time) bool {
	if x.covers(r) {
		return true
	}
	for _, key := range keys(r) {
		i, ok := slices.BinarySearchFunc(x.retired, key, func(e retired, r Resource) int { return compare(e.Resource, r) })
		if ok && (x.policy.Knowledge.Extensions != ExtensionsExact || learnt.Before(x.retired[i].at.Add(trustedAfter))) {
			return true
		}
	}
	return false
}

// doubts reports whether a resource that a document lists may be built in, although its extension
// was deleted. learnt is when the document was learnt.
func (x *extensions) doubts(r Resource, learnt time.Time) bool {
	if x.policy.Knowledge.Extensions != ExtensionsExact || x.covers(r) || !x.exclude(r, learnt) {
		return false
	}
	either := keys(r)
	return !slices.ContainsFunc(x.retired, func(e retired) bool {
		return slices.Contains(either[:], e.Resource) && learnt.Before(e.at.Add(doubtedAfter))
	})
}

// covers reports whether a resource is, or belongs to, an extension that exists.
func (x *extensions) covers(r Resource) bool {
	either := keys(r)
	return contains(x.active, either[0]) || contains(x.active, either[1])
}

// serves reports whether the local server serves, or will soon serve, a request as an extension.
func (x *extensions) serves(r Request) bool {
	if r.Kind != KindDiscovery {
		return x.covers(r.Resource)
	}
	return slices.ContainsFunc(x.active, func(a Resource) bool {
		return a.Group == r.Resource.Group && (r.Resource.Version == "" || a.Version == r.Resource.Version)
	})
}

// retiring reports whether a former extension is still excluded.
func (x *extensions) retiring() bool { return len(x.retired) > 0 }

// keys are the entries that exclude a resource: the entry of the resource, and the entry of its
// group version.
func keys(r Resource) [2]Resource {
	return [2]Resource{{Group: r.Group, Version: r.Version, Resource: r.Resource}, {Group: r.Group, Version: r.Version}}
}

func compare(a, b Resource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Resource, b.Resource))
}

// entries are the entries that a set of extensions makes under the policy.
func entries(policy ExtensionPolicy, e Extensions) []Resource {
	var list []Resource
	for _, gvr := range listedVersions(policy, e) {
		r := Resource{Group: gvr.Group, Version: gvr.Version}
		if policy == ExtensionsExact {
			r.Resource = gvr.Resource
		}
		list = append(list, r)
	}
	for _, gv := range e.Aggregated {
		list = append(list, Resource{Group: gv.Group, Version: gv.Version})
	}
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}

// listedVersions are the versions of custom resources that count under the policy. Upstream counts
// all of spec.versions, served or not (crdExtractor in kubernetes,
// pkg/controlplane/apiserver/aggregator.go).
func listedVersions(policy ExtensionPolicy, e Extensions) []schema.GroupVersionResource {
	if policy == ExtensionsExact {
		return e.CustomResources
	}
	return slices.Concat(e.CustomResources, e.Unserved)
}

// observe returns the extensions after a change. expires is the time at which a grace that begins
// now ends.
func (x *extensions) observe(e Extensions, expires time.Time) extensions {
	next := extensions{policy: x.policy, current: e, active: entries(x.policy.Knowledge.Extensions, e), retired: slices.Clone(x.retired)}
	next.look = x.look
	switch x.policy.Knowledge.Extensions {
	case ExtensionsCutOut: // an extension that is active again is no longer retired
		next.retired = slices.DeleteFunc(next.retired, func(r retired) bool { return contains(next.active, r.Resource) })
	case ExtensionsFiltered: // every change removes graces that have ended
		next.retired = slices.DeleteFunc(next.retired, func(r retired) bool { return r.at.Add(x.policy.Quirks.ExtensionGrace).Before(e.At) })
	}
	for _, old := range x.active {
		if contains(next.active, old) {
			continue
		}
		if !e.At.Before(x.look) {
			next.look = expires
		}
		r := retired{Resource: old, at: e.At, expires: expires}
		if x.policy.Knowledge.Extensions == ExtensionsCutOut && !deleted(old, x.current, e) {
			r.at, r.expires = time.Time{}, time.Time{}
		}
		next.retired = slices.DeleteFunc(next.retired, func(o retired) bool { return o.Resource == old })
		next.retired = append(next.retired, r)
	}
	slices.SortFunc(next.retired, func(a, b retired) int { return compare(a.Resource, b.Resource) })
	return next
}

// deleted reports whether a group version vanished because an object was deleted. It is false if an
// object that still exists stopped serving the group version. v1.35 looks only at deletions.
func deleted(gone Resource, before, after Extensions) bool {
	if slices.Contains(before.Aggregated, gone.GroupVersion()) {
		return true
	}
	remaining := listedVersions(ExtensionsCutOut, after)
	return slices.ContainsFunc(listedVersions(ExtensionsCutOut, before), func(b schema.GroupVersionResource) bool {
		return b.GroupVersion() == gone.GroupVersion() && !slices.ContainsFunc(remaining, func(a schema.GroupVersionResource) bool {
			return a.GroupResource() == b.GroupResource()
		})
	})
}

func contains(sorted []Resource, r Resource) bool {
	_, ok := slices.BinarySearchFunc(sorted, r, compare)
	return ok
}

// tick returns the extensions without the graces that have ended.
func (x *extensions) tick(now time.Time) (extensions, bool) {
	over := func(r retired) bool { return !r.expires.IsZero() && !now.Before(r.expires) }
	next := *x
	if !slices.ContainsFunc(x.retired, over) {
		return next, false
	}
	next.retired = slices.DeleteFunc(slices.Clone(x.retired), over)
	return next, true
}

// cutOut returns a peer's document without everything that is excluded now.
func (x *extensions) cutOut(groups discovery.Groups) discovery.Groups {
	return x.leaveOut(groups, func(gvr schema.GroupVersionResource) bool {
		return x.exclude(Resource{Group: gvr.Group, Version: gvr.Version}, time.Time{})
	})
}

// leaveOut returns a peer's document without the resources that drop names. Under upstream's
// presets it filters only if at least one resource is dropped, like upstream
// (filterPeerCacheEntry). So if an excluded version without resources is the only one to drop, it
// stays.
func (x *extensions) leaveOut(groups discovery.Groups, drop func(schema.GroupVersionResource) bool) discovery.Groups {
	if x.policy.Knowledge.Extensions == ExtensionsExact {
		return discovery.Filter(groups, drop)
	}
	for _, g := range groups {
		for _, v := range g.Versions {
			if len(v.Resources) > 0 && drop(schema.GroupVersionResource{Group: g.Name, Version: v.Version}) {
				return discovery.Filter(groups, drop)
			}
		}
	}
	return groups
}

func (t *Table) extended(e Extensions) *Table {
	policy := t.policy.Knowledge.Extensions
	if policy == ExtensionsIgnored {
		return t
	}
	next := t.copy()
	next.noteTime(e.At)
	next.extensions = t.extensions.observe(e, next.graceEnds(e.At))
	if slices.Equal(next.extensions.active, t.extensions.active) && slices.Equal(next.extensions.retired, t.extensions.retired) {
		next.extensions.active, next.extensions.retired = t.extensions.active, t.extensions.retired
		return next
	}
	if policy != ExtensionsCutOut {
		next.noteNative(t, e.At)
		next.bumpUnlessAlone()
		return next
	}
	// Extensions that exist now are cut out for good. Extensions that ceased to exist return with
	// the first fetch after their grace.
	changed := false
	for i := range next.peers {
		for root := range roots {
			if groups := next.extensions.cutOut(next.peers[i].learnt[root].groups); !discovery.Same(groups, next.peers[i].learnt[root].groups) {
				d := &next.change(i).learnt[root]
				d.groups, d.index, changed = groups, discovery.NewIndex(groups), true
			}
		}
	}
	if changed {
		next.documents++
	}
	return next
}

// graceEnds is the time at which a grace that begins now ends; zero if the clock does not end it.
// Under ExtensionsFiltered, a grace schedules a look at its end. If a look is scheduled already,
// the grace ends at the next ReapInterval (client-go, util/workqueue: AddAfter keeps a key's
// earlier time).
func (t *Table) graceEnds(now time.Time) time.Time {
	policy, reap := t.policy.Knowledge.Extensions, t.policy.Quirks.ExtensionReapInterval
	if policy == ExtensionsExact {
		return time.Time{}
	}
	end := now.Add(t.policy.Quirks.ExtensionGrace)
	if reap == 0 || policy == ExtensionsFiltered && !now.Before(t.extensions.look) {
		return end
	}
	rounds := (end.Sub(t.began) + reap) / reap // strictly later, like upstream
	return t.began.Add(rounds * reap)
}

func (t *Table) tick(now time.Time) *Table {
	x, changed := t.extensions.tick(now)
	if !changed {
		return t
	}
	next := t.copy()
	next.extensions = x
	if t.policy.Knowledge.Extensions != ExtensionsCutOut { // ExtensionsCutOut does not filter documents again
		next.bumpUnlessAlone()
	}
	return next
}

// forgetRetired ends exclusions under ExtensionsExact. It ends those for which every peer's
// document is new enough to count.
func (t *Table) forgetRetired() {
	if t.policy.Knowledge.Extensions != ExtensionsExact || !t.extensions.retiring() {
		return
	}
	outdated := func(r retired) bool {
		return slices.ContainsFunc(t.peers, func(p *peer) bool {
			old := func(d document) bool { return d.known() && d.at.Before(r.at.Add(trustedAfter)) }
			return slices.ContainsFunc(p.learnt[:], old) || slices.ContainsFunc(p.before[:], old)
		})
	}
	before := len(t.extensions.retired)
	t.extensions.retired = slices.DeleteFunc(slices.Clone(t.extensions.retired), func(r retired) bool { return !outdated(r) })
	if len(t.extensions.retired) < before && len(t.extensions.active) > 0 {
		t.documents++ // what is built in at a peer may show now (see builtIn)
	}
}

// Wake returns the time at which the next [Tick] changes something; ok is false if no Tick will.
func (t *Table) Wake() (at time.Time, ok bool) {
	for _, r := range t.extensions.retired {
		if !r.expires.IsZero() && (!ok || r.expires.Before(at)) {
			at, ok = r.expires, true
		}
	}
	return at, ok
}

// bumpUnlessAlone invalidates merged documents. Under StaleWhenAlone it does nothing if there are
// no peers (upstream: refilterPeerDiscoveryCache).
func (t *Table) bumpUnlessAlone() {
	if t.policy.Quirks.StaleWhenAlone && !slices.ContainsFunc(t.peers, (*peer).contributes) {
		return
	}
	t.documents++
}
