package discovery

import (
	"fmt"
	"math/rand/v2"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// random draws documents from few names. So the documents overlap, contradict each other, or are
// equal.
type random struct {
	*rand.Rand
	// repeats allows duplicate names in a list, and resources without a name. Real servers have
	// neither.
	repeats bool
}

func newRandom(seed uint64) *random { return &random{Rand: rand.New(rand.NewPCG(seed, 0))} }

// some draws some of the names, in order, rotated or shuffled.
func (r *random) some(names ...string) []string {
	var out []string
	for _, name := range names {
		if r.IntN(2) > 0 {
			out = append(out, name)
			if r.repeats && r.IntN(8) == 0 {
				out = append(out, name)
			}
		}
	}
	switch {
	case r.IntN(4) == 0:
		r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	case len(out) > 1 && r.IntN(4) == 0:
		out = append(out[1:], out[0])
	}
	if out == nil && r.IntN(2) == 0 {
		out = []string{}
	}
	return out
}

func (r *random) groups() Groups {
	var groups Groups
	for _, name := range r.some("apps", "batch", "example.com", "policy", "") {
		group := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if r.IntN(20) == 0 {
			group.Labels = map[string]string{"from": fmt.Sprint(r.IntN(3))}
		}
		for _, version := range r.some("v2", "v1", "v2beta1", "v1beta2", "v1beta1", "v1alpha1", "hub") {
			group.Versions = append(group.Versions, apidiscoveryv2.APIVersionDiscovery{
				Version: version, Resources: r.resources(), Freshness: pick(r, apidiscoveryv2.DiscoveryFreshnessCurrent, "Current", "Stale", ""),
			})
		}
		groups = append(groups, group)
	}
	return groups
}

func (r *random) resources() []apidiscoveryv2.APIResourceDiscovery {
	var out []apidiscoveryv2.APIResourceDiscovery
	if r.IntN(3) == 0 {
		return out
	}
	names := []string{"cronjobs", "deployments", "jobs", "pods"}
	if r.repeats {
		names = append(names, "")
	}
	for _, name := range r.some(names...) {
		resource := apidiscoveryv2.APIResourceDiscovery{
			Resource: name, Scope: pick(r, apidiscoveryv2.ScopeNamespace, "Namespaced", "Cluster"), ResponseKind: r.kind(),
			SingularResource: pick(r, name, name, "other"), Verbs: r.some("get", "list", "watch"), ShortNames: r.some("x", "y"), Categories: r.some("all"),
		}
		for _, sub := range r.some("scale", "status") {
			resource.Subresources = append(resource.Subresources, apidiscoveryv2.APISubresourceDiscovery{
				Subresource: sub, ResponseKind: r.kind(), Verbs: r.some("get", "patch"),
			})
		}
		out = append(out, resource)
	}
	return out
}

func (r *random) kind() *metav1.GroupVersionKind {
	return pick(r, nil, &metav1.GroupVersionKind{}, &metav1.GroupVersionKind{Kind: "Job"}, &metav1.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"})
}

// sources draws servers. The first one is local. Some share a document, or differ in a detail.
func (r *random) sources(most int) []Source {
	var sources []Source
	for i := range 1 + r.IntN(most) {
		s := Source{
			Server: fmt.Sprintf("apiserver-%c%d", 'a'+r.IntN(3), i), Local: i == 0,
			Version: pick(r, "v1.37.1", "v1.37.1", "v1.36.3", "v1.38.0-alpha.1", "1.37", "v1.9.0", "", "unknown"),
		}
		switch earlier := i; {
		case i > 0 && r.IntN(3) == 0:
			s.Groups = sources[r.IntN(earlier)].Groups
		case i > 0 && r.IntN(2) == 0:
			s.Groups = r.altered(sources[r.IntN(earlier)].Groups)
		default:
			s.Groups = r.groups()
		}
		sources = append(sources, s)
	}
	return sources
}

// altered returns a copy with one list of resources drawn again, or without one group.
func (r *random) altered(groups Groups) Groups {
	out := copied(groups)
	if len(out) == 0 {
		return out
	}
	g := &out[r.IntN(len(out))]
	if len(g.Versions) == 0 || r.IntN(5) == 0 {
		return append(append(Groups{}, out[:len(out)/2]...), out[len(out)/2+1:]...)
	}
	g.Versions[r.IntN(len(g.Versions))].Resources = r.resources()
	return out
}

func pick[T any](r *random, options ...T) T { return options[r.IntN(len(options))] }
