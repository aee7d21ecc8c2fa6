package sim

import (
	"cmp"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy/discovery"
	"github.com/skewproof/skewproof/sim/recorded"
)

type groupVersion struct{ group, version string }

// extendedDocument is what a server with extensions serves and lists. Real kube-apiservers decide
// by group version, in requests and in discovery alike. Aggregated APIs come first, then built-in
// resources, then custom resources. So a server does not serve a custom resource in a group version
// that it has built in, while an older server may serve that resource. If a server has only other
// versions of the group built in, it lists the custom resource and answers 404 for it, because the
// document of the group claims every path below the group. Sources: the director in
// k8s.io/apiserver/pkg/server/handler.go, and the order of sources in
// pkg/endpoints/discovery/aggregated/handler.go.
type extendedDocument struct {
	version  *recorded.Version
	roots    [2]discovery.Groups
	document history.Document
	extra    map[resourceKey]bool  // the extensions that it serves
	hidden   map[groupVersion]bool // the group versions that are aggregated
}

// extend returns what a version serves with extensions; nil if it serves none of them.
func (s *Simulator) extend(v *recorded.Version, all []definition) *extendedDocument {
	key := v.Document.Hash
	for _, d := range all {
		if d.established {
			key += "+" + d.String() + " " + d.accepted.kind + " " + strings.Join(d.accepted.short, " ")
		}
	}
	if key == v.Document.Hash {
		return nil
	}
	if e, ok := s.extended[key]; ok {
		return e
	}
	e := newExtendedDocument(v, all)
	e.document.Hash = key
	s.extended[key] = e
	return e
}

func newExtendedDocument(v *recorded.Version, all []definition) *extendedDocument {
	e := &extendedDocument{version: v, roots: v.Roots, document: history.Document{Bytes: v.Document.Bytes}, extra: map[resourceKey]bool{},
		hidden: map[groupVersion]bool{}}
	builtIn := v.GroupVersions
	for _, d := range all {
		for _, version := range d.Versions {
			if d.Aggregated {
				e.hidden[groupVersion{d.Group, version}] = true
			}
		}
	}
	var added []addition
	for _, d := range all {
		if !d.established {
			continue
		}
		for _, version := range d.Versions {
			gv := groupVersion{d.Group, version}
			if !d.Aggregated && (e.hidden[gv] || slices.Contains(builtIn, history.GVR{Group: d.Group, Version: version})) {
				continue
			}
			added = append(added, addition{gv, d})
			inGroup := func(o history.GVR) bool { return o.Group == d.Group }
			if d.Aggregated || !slices.ContainsFunc(builtIn, inGroup) {
				e.extra[resourceKey{d.Group, version, d.Resource, ""}] = true
			}
		}
	}
	// Servers list the resources of a group version by name.
	slices.SortStableFunc(added, func(a, b addition) int { return cmp.Compare(a.Resource, b.Resource) })
	e.list(added)
	return e
}

// addition is one version of an extension that a server lists.
type addition struct {
	groupVersion
	definition
}

// list adds the extensions to the documents, and removes from them what is hidden.
func (e *extendedDocument) list(added []addition) {
	var builtIn, extended discovery.Groups // groups with a built-in version are before others
	for _, g := range e.version.Roots[1] {
		kept := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: g.ObjectMeta}
		for _, v := range g.Versions {
			if !e.hidden[groupVersion{g.Name, v.Version}] {
				kept.Versions = append(kept.Versions, v)
			}
		}
		if len(kept.Versions) > 0 {
			builtIn = append(builtIn, kept)
		}
	}
	order := prioritiesOf(added)
	for _, a := range added {
		list, at := &builtIn, slices.IndexFunc(builtIn, a.isGroup)
		if at < 0 {
			list, at = &extended, slices.IndexFunc(extended, a.isGroup)
		}
		if at < 0 {
			at = len(extended)
			extended = append(extended, apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: a.group}})
		}
		a.addTo(&(*list)[at], order)
	}
	slices.SortFunc(extended, func(a, b apidiscoveryv2.APIGroupDiscovery) int { return cmp.Compare(a.Name, b.Name) })
	e.roots[1] = append(builtIn, extended...)

	e.listResources(added)
}

// listResources makes the document that invariants read, in the order of the roots.
func (e *extendedDocument) listResources(added []addition) {
	builtIn := map[groupVersion][]history.Resource{}
	for _, r := range e.version.Document.Resources {
		gv := groupVersion{r.Group, r.Version}
		builtIn[gv] = append(builtIn[gv], r)
	}
	for root, groups := range e.roots {
		for _, g := range groups {
			name := g.Name
			if root == 0 {
				name = "" // the core group
			}
			for _, v := range g.Versions {
				gv := groupVersion{name, v.Version}
				if !e.hidden[gv] {
					e.document.Resources = append(e.document.Resources, builtIn[gv]...)
				}
				for _, a := range added {
					if a.groupVersion == gv {
						e.document.Resources = append(e.document.Resources, history.Resource{
							GVR: history.GVR{Group: gv.group, Version: gv.version, Resource: a.Resource}, Kind: a.kind(), Verbs: extensionVerbs,
						})
					}
				}
			}
		}
	}
}

func (a addition) isGroup(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == a.group }

func (a addition) kind() string {
	if a.Aggregated {
		return a.Resource
	}
	return a.accepted.kind
}

// addTo adds the resource to its group.
func (a addition) addTo(g *apidiscoveryv2.APIGroupDiscovery, order priorities) {
	name := a.groupVersion.version
	v := slices.IndexFunc(g.Versions, func(v apidiscoveryv2.APIVersionDiscovery) bool { return v.Version == name })
	if v < 0 {
		v = slices.IndexFunc(g.Versions, func(o apidiscoveryv2.APIVersionDiscovery) bool {
			return order.before(a.groupVersion, groupVersion{a.group, o.Version})
		})
		if v < 0 {
			v = len(g.Versions)
		}
		g.Versions = slices.Insert(slices.Clip(g.Versions), v,
			apidiscoveryv2.APIVersionDiscovery{Version: name, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent})
	}
	r := apidiscoveryv2.APIResourceDiscovery{
		Resource: a.Resource, ResponseKind: &metav1.GroupVersionKind{Group: a.group, Version: name, Kind: a.kind()},
		Scope: apidiscoveryv2.ScopeCluster, SingularResource: a.Resource, Verbs: extensionVerbs,
	}
	if !a.Aggregated {
		r.ShortNames, r.Categories = a.accepted.short, a.Categories
	}
	g.Versions[v].Resources = append(slices.Clip(g.Versions[v].Resources), r)
}

// These are the priorities of versions in their group. Those of built-in versions differ by group
// (apiVersionPriorities in k8s.io/kubernetes, cmd/kube-apiserver/app/aggregator.go); stablePriority
// and unstablePriority are approximate values. Those of custom resources are above all others, so a
// custom resource provides its group's preferred version.
const (
	customPriority    = 100 // k8s.io/apiextensions-apiserver, pkg/apiserver/customresource_discovery_controller.go
	preferredPriority = 20  // internal/definer
	stablePriority    = 15
	unstablePriority  = 9
)

// priorities are those of the versions of extensions.
type priorities map[groupVersion]int

func prioritiesOf(added []addition) priorities {
	all := priorities{}
	for _, a := range added {
		switch {
		case !a.Aggregated:
			all[a.groupVersion] = customPriority
		case a.Preferred == a.groupVersion.version:
			all[a.groupVersion] = preferredPriority
		default:
			all[a.groupVersion] = stablePriority
		}
	}
	return all
}

// before reports whether a version of an extension is listed before another version of its group.
func (p priorities) before(a, b groupVersion) bool {
	own, other := p[a], p[b]
	switch {
	case other != 0:
	case strings.Contains(b.version, "alpha"), strings.Contains(b.version, "beta"):
		other = unstablePriority
	default:
		other = stablePriority
	}
	if own != other {
		return own > other
	}
	return version.CompareKubeAwareVersionStrings(a.version, b.version) > 0
}
