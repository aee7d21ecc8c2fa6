package discovery

import (
	"maps"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
)

// MergeConsensus merges like kube-apiservers 1.35 to 1.37, byte for byte (k8s.io/apiserver,
// pkg/endpoints/discovery/aggregated, peer_aggregated_handler.go: mergeResources). It takes the
// servers in the order of their identities, and ignores their versions. If the lists of servers
// differ, it orders them topologically, and alphabetically where they contradict each other. If a
// resource differs, its verbs and subresources are sorted. A source that is not Local but has the
// local one's identity replaces the local source. MergeConsensus does not modify the sources. The
// result shares with them everything that did not change.
func MergeConsensus(sources []Source) Groups {
	var local Source
	for _, s := range sources {
		if s.Local {
			local = s
		}
	}
	byServer := map[string]Groups{local.Server: local.Groups}
	servers := []string{local.Server}
	for _, s := range sources {
		if s.Local {
			continue
		}
		if _, ok := byServer[s.Server]; !ok {
			servers = append(servers, s.Server)
		}
		byServer[s.Server] = s.Groups
	}
	if len(servers) == 1 {
		return local.Groups
	}
	slices.Sort(servers)

	localOrder := namesOf(local.Groups, groupLevel.key)
	merged := map[string]apidiscoveryv2.APIGroupDiscovery{}
	orders := make([][]string, 0, len(servers))
	changed, sameOrder := false, true
	for _, server := range servers {
		order := namesOf(byServer[server], groupLevel.key)
		for _, group := range byServer[server] {
			known, ok := merged[group.Name]
			if !ok {
				merged[group.Name] = group
				continue
			}
			both, differs := consensusOfGroup(known, group)
			merged[group.Name] = both
			changed = changed || differs
		}
		orders = append(orders, order)
		sameOrder = sameOrder && slices.Equal(localOrder, order)
	}
	order := localOrder
	switch {
	case sameOrder && !changed:
		return local.Groups
	case !sameOrder:
		order = mergeOrders(orders)
	}
	// Like upstream, list a group twice if its name is twice in the order.
	groups := make(Groups, 0, len(order))
	for _, name := range order {
		groups = append(groups, merged[name])
	}
	return groups
}

func consensusOfGroup(a, b apidiscoveryv2.APIGroupDiscovery) (apidiscoveryv2.APIGroupDiscovery, bool) {
	var changed bool
	a.Versions, changed = consensusOf(a.Versions, b.Versions, versionLevel.key, consensusOfVersion)
	return a, changed
}

func consensusOfVersion(a, b apidiscoveryv2.APIVersionDiscovery) (apidiscoveryv2.APIVersionDiscovery, bool) {
	var changed bool
	a.Resources, changed = consensusOf(a.Resources, b.Resources, resourceLevel.key, consensusOfResource)
	return a, changed
}

// consensusOfResource keeps the first server's description, even if this has neither verbs nor
// kind.
func consensusOfResource(a, b apidiscoveryv2.APIResourceDiscovery) (apidiscoveryv2.APIResourceDiscovery, bool) {
	if equalResource(&a, &b) {
		return a, false
	}
	merged := a
	if merged.Resource == "" {
		merged = b
	}
	merged.Verbs = sortedUnion(a.Verbs, b.Verbs, verbLevel.key)
	merged.Subresources = sortedUnion(a.Subresources, b.Subresources, subresourceLevel.key)
	return merged, true
}

// consensusOf merges two lists of versions or resources, and reports whether the result differs
// from a.
func consensusOf[T any](a, b []T, key func(*T) string, both func(a, b T) (T, bool)) ([]T, bool) {
	orderA, orderB := namesOf(a, key), namesOf(b, key)
	merged := make(map[string]T, len(a))
	for i := range a {
		merged[orderA[i]] = a[i] // if several have the same name, the last one counts
	}
	changed := false
	for i := range b {
		known, ok := merged[orderB[i]]
		if !ok {
			merged[orderB[i]] = b[i]
			continue
		}
		if item, differs := both(known, b[i]); differs {
			merged[orderB[i]], changed = item, true
		}
	}
	order := orderA
	switch sameOrder := slices.Equal(orderA, orderB); {
	case sameOrder && !changed:
		return a, false
	case !sameOrder:
		order = mergeOrders([][]string{orderA, orderB})
	}
	out := make([]T, 0, len(order))
	for _, name := range order {
		if item, ok := merged[name]; ok {
			out = append(out, item)
			delete(merged, name)
		}
	}
	return out, true
}

// sortedUnion returns all items, sorted by name. If several items have the same name, it has the
// last one. It is nil if there are no items.
func sortedUnion[T any](a, b []T, key func(*T) string) []T {
	items := map[string]T{}
	for _, list := range [][]T{a, b} {
		for i := range list {
			items[key(&list[i])] = list[i]
		}
	}
	var out []T
	for _, name := range slices.Sorted(maps.Keys(items)) {
		out = append(out, items[name])
	}
	return out
}

func namesOf[T any](list []T, key func(*T) string) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = key(&list[i])
	}
	return names
}
