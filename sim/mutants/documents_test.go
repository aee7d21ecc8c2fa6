package mutants

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
	"github.com/skewproof/skewproof/sim"
)

// documents are mutants of discovery.
var documents = []mutant{
	{
		part: "discovery", name: "order-of-a-map",
		wrong: "Every server lists the groups of a merged document in another order.",
		plant: func(acted func()) sim.Defects {
			return onDocuments(func(self proxy.ServerID, a *answer) {
				var list apidiscoveryv2.APIGroupDiscoveryList
				if json.Unmarshal(a.body, &list) != nil || len(list.Items) < 2 {
					return
				}
				turn := int(self[len(self)-1]) % len(list.Items)
				if turn == 0 {
					return
				}
				acted()
				list.Items = slices.Concat(list.Items[turn:], list.Items[:turn])
				a.body, _ = json.Marshal(list)
			})
		},
	},
	{
		part: "discovery", name: "versions-reversed",
		wrong: "Every server lists the versions of a group in the reverse order, so that clients prefer the least stable.",
		plant: func(acted func()) sim.Defects {
			return onDocuments(func(_ proxy.ServerID, a *answer) {
				var list apidiscoveryv2.APIGroupDiscoveryList
				if json.Unmarshal(a.body, &list) != nil {
					return
				}
				for _, group := range list.Items {
					if len(group.Versions) > 1 {
						acted()
						slices.Reverse(group.Versions)
					}
				}
				a.body, _ = json.Marshal(list)
			})
		},
	},
	{
		part: "discovery", name: "tag-of-one-server",
		wrong: "The ETag of a document depends on the server that answers.",
		plant: func(acted func()) sim.Defects {
			return onDocuments(func(self proxy.ServerID, a *answer) {
				acted()
				a.header.Set("ETag", strconv.Quote(string(self)+a.header.Get("ETag")))
			})
		},
	},
	{
		part: "discovery", name: "tag-kept",
		wrong: "A document that has changed keeps its ETag, so clients get 304.",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Handler: func(self proxy.ServerID, h http.Handler) http.Handler {
				first := map[string]string{}
				return onDocuments(func(_ proxy.ServerID, a *answer) {
					path, tag := a.path, a.header.Get("ETag")
					if first[path] == "" {
						first[path] = tag
					}
					if first[path] != tag {
						acted()
						a.header.Set("ETag", first[path])
					}
				}).Handler(self, h)
			}}
		},
	},
	{
		part: "discovery", name: "document-kept",
		wrong: "A merged document is made once and never updated.",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Handler: func(self proxy.ServerID, h http.Handler) http.Handler {
				first := map[string]answer{}
				return onDocuments(func(_ proxy.ServerID, a *answer) {
					kept, ok := first[a.path]
					if !ok {
						first[a.path] = *a
						return
					}
					if string(kept.body) != string(a.body) {
						acted()
						*a = kept
					}
				}).Handler(self, h)
			}}
		},
	},
	{
		part: "discovery", name: "versions-of-peers-unknown", rare: true,
		wrong:     "Servers do not store the versions of peers, so every server takes itself for the newest.",
		resources: 17, // with fewer resources the order is the same, whichever server is the newest
		plant: func(acted func()) sim.Defects {
			return fetching(func(r *proxy.FetchResult) bool {
				acted()
				r.Version = ""
				return true
			})
		},
	},
	{
		part: "discovery", name: "subresources-lost",
		wrong: "Servers ignore the subresources in a peer's document.",
		plant: func(acted func()) sim.Defects {
			return onResources(func(r *apidiscoveryv2.APIResourceDiscovery) {
				if len(r.Subresources) > 0 {
					acted()
					r.Subresources = nil
				}
			})
		},
	},
	{
		part: "discovery", name: "verbs-lost",
		wrong: "Servers ignore the resources in a peer's document that cannot be read.",
		plant: func(acted func()) sim.Defects {
			return onResources(func(r *apidiscoveryv2.APIResourceDiscovery) {
				r.Verbs = slices.DeleteFunc(slices.Clone(r.Verbs), func(verb string) bool {
					write := verb != "get" && verb != "list" && verb != "watch"
					if write {
						acted()
					}
					return write
				})
			})
		},
	},
	{
		part: "discovery", name: "profile-ignored",
		wrong: "A server that a peer asks for its own resources lists those of its peers too.",
		plant: profileIgnored,
	},
	{
		part: "discovery", name: "peers-left-out",
		wrong:   "Discovery lists only the resources of the local server.",
		changes: []string{"Discovery.Merge=false"},
	},
	{
		part: "discovery", name: "subresources-go-with-resources",
		wrong:   "A request for a subresource goes to any server of its resource.",
		changes: []string{"Routing.Subresources=false"},
	},
}

// onDocuments plants a change of the discovery documents that servers send to clients.
func onDocuments(change func(self proxy.ServerID, a *answer)) sim.Defects {
	return sim.Defects{Handler: func(self proxy.ServerID, h http.Handler) http.Handler {
		return changing(h, func(r *http.Request, a *answer) {
			if (r.URL.Path == "/apis" || r.URL.Path == "/api") && a.status == http.StatusOK {
				change(self, a)
			}
		})
	}}
}

// onResources plants a change of every resource that servers learn from peers.
func onResources(change func(*apidiscoveryv2.APIResourceDiscovery)) sim.Defects {
	return documented(func(groups discovery.Groups) discovery.Groups {
		groups = slices.Clone(groups)
		for g := range groups {
			groups[g].Versions = slices.Clone(groups[g].Versions)
			for v := range groups[g].Versions {
				version := &groups[g].Versions[v]
				version.Resources = slices.Clone(version.Resources)
				for i := range version.Resources {
					change(&version.Resources[i])
				}
			}
		}
		return groups
	})
}

// profileIgnored makes peers answer with everything that they have learnt, and not only with their
// own resources.
func profileIgnored(acted func()) sim.Defects {
	type view [2]map[proxy.ServerID]discovery.Source
	views := lives[view]{}
	note := func(v *view, root int, id proxy.ServerID, version string, groups discovery.Groups) {
		if v[root] == nil {
			v[root] = map[proxy.ServerID]discovery.Source{}
		}
		v[root][id] = discovery.Source{Server: string(id), Version: version, Groups: groups}
	}
	return sim.Defects{Local: views.begin, Events: func(self proxy.ServerID, events []proxy.Event) []proxy.Event {
		for _, e := range events {
			switch e := e.(type) {
			case proxy.LocalFetched:
				for root := range e.Roots {
					note(views[self], root, self, e.Version, e.Roots[root])
				}
			case proxy.PeerGone:
				for root := range views[self] {
					delete(views[self][root], e.ID)
				}
			}
		}
		return results(events, func(r *proxy.FetchResult) bool {
			for root := range r.Roots {
				if r.Roots[root].Failed != "" {
					continue
				}
				sources := []discovery.Source{{Server: string(r.ID), Version: r.Version, Groups: r.Roots[root].Groups}}
				if peer := views[r.ID]; peer != nil {
					for id, s := range peer[root] { // the order does not matter: Merge orders them
						if id != r.ID {
							acted()
							sources = append(sources, s)
						}
					}
				}
				r.Roots[root].Groups = discovery.Merge(sources)
				note(views[self], root, r.ID, r.Version, r.Roots[root].Groups)
			}
			return true
		})
	}}
}
