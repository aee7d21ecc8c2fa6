package discovery

import (
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
)

// Merge returns the union of everything that the sources list: groups, versions, resources,
// subresources, verbs.
//
// Order. Groups have the order of the newest server, by [Source].Version, then by Server. A group
// that only an older server has goes right after its predecessor in the older server's list, or to
// the front if it has no predecessor there. Resources, subresources and verbs follow the same rule.
// Versions keep the newest server's order too. But a version that only older servers have never
// goes before a more stable version (generally available, beta, alpha). It goes after a less stable
// version only if the newest server itself lists that version before another one that is as stable
// as the added version. If the added version has no predecessor with the same stability, its place
// is at the front or the end of the versions with its stability: at the front if its predecessor is
// more stable, and at the end if its predecessor is less stable or if it has none. So only a more
// stable version can replace the newest server's preferred version.
//
// Fields. A field that is not a merged list comes from the newest server that has the resource with
// a verb. If no server has it with a verb, the field comes from the newest server that lists the
// resource: without verbs, a resource is only the parent of its subresources. Short names,
// categories and accepted types are not merged. Group metadata comes from the newest server. A
// version is Current if it is Current on any server, because the union then has a fresh list.
// Otherwise its freshness is the newest server's ("Stale": the aggregated API does not answer).
//
// Laws, for documents without duplicate names. The result does not depend on the order of the
// sources, or on which source is Local. So all servers with the same knowledge compute the same
// bytes. It is complete: it lists everything that a source lists, and nothing else. It is
// idempotent and associative:
//   - If the newest sources are replaced by their merge, which gets the label of the newest of
//     them, the result does not change.
//   - If the merge of any of the sources is added as the newest source, the result lists the same.
//   - If the merge of all sources is added as the newest source, the order does not change either.
//
// Merge does not modify the sources. The result shares with them everything that did not change. If
// nothing changed, it is the newest source's own Groups. The time is linear in the size of the
// input.
func Merge(sources []Source) Groups {
	lists := make([]Groups, 0, len(sources))
	for _, s := range NewestFirst(sources) {
		if len(s.Groups) > 0 {
			lists = append(lists, s.Groups)
		}
	}
	if len(lists) == 0 {
		return nil
	}
	groups, _ := mergeLists(lists, groupLevel)
	return groups
}

// level says how the items of one level of a document are merged.
type level[T any] struct {
	key func(*T) string
	// same returns true only if b adds nothing to a. False is always safe: merge then decides.
	same func(a, b *T) bool
	// merge adds more to item, and reports whether this changed anything. It modifies neither
	// argument.
	merge func(item *T, more []*T) (T, bool)
	// ranks returns the rank of each item of a list; newest is true for the first list. Nil: no
	// ranks.
	ranks func(list []T, newest bool) []int8
}

var (
	groupLevel = level[apidiscoveryv2.APIGroupDiscovery]{
		key:   func(g *apidiscoveryv2.APIGroupDiscovery) string { return g.Name },
		same:  func(a, b *apidiscoveryv2.APIGroupDiscovery) bool { return sameBacking(a.Versions, b.Versions) },
		merge: mergeGroup,
	}
	versionLevel = level[apidiscoveryv2.APIVersionDiscovery]{
		key: func(v *apidiscoveryv2.APIVersionDiscovery) string { return v.Version },
		same: func(a, b *apidiscoveryv2.APIVersionDiscovery) bool {
			return a.Freshness == b.Freshness && sameBacking(a.Resources, b.Resources)
		},
		merge: mergeVersion,
		ranks: versionRanks,
	}
	resourceLevel = level[apidiscoveryv2.APIResourceDiscovery]{
		key:   func(r *apidiscoveryv2.APIResourceDiscovery) string { return r.Resource },
		same:  equalResource,
		merge: mergeResource,
	}
	subresourceLevel = level[apidiscoveryv2.APISubresourceDiscovery]{
		key:   func(s *apidiscoveryv2.APISubresourceDiscovery) string { return s.Subresource },
		same:  equalSubresource,
		merge: mergeSubresource,
	}
	verbLevel = level[string]{
		key:  func(v *string) string { return *v },
		same: func(a, b *string) bool { return true },
	}
)

// mergeLists merges lists of one level, the newest first. It reports whether the result differs
// from the newest list. If not, it returns the newest list.
func mergeLists[S ~[]T, T any](lists []S, l level[T]) (S, bool) {
	base := lists[0]
	if more, ok := aligned(lists, l); ok {
		return mergeAligned(base, more, l)
	}
	u := newUnion(l.key, l.same, len(base))
	u.orphansLast = l.ranks != nil
	changed := false
	for i, list := range lists {
		var rankOf []int8
		if l.ranks != nil {
			rankOf = l.ranks(list, i == 0)
		}
		known := len(u.nodes)
		u.add(list, rankOf)
		changed = changed || i > 0 && len(u.nodes) != known
	}
	out := make(S, 0, len(u.nodes))
	u.each(func(n *node[T]) {
		if len(n.more) == 0 {
			out = append(out, *n.item)
			return
		}
		item, differs := l.merge(n.item, n.more)
		out = append(out, item)
		changed = changed || differs
	})
	if !changed {
		return base, false
	}
	return out, true
}

// aligned reports whether all lists have the same keys in the same order. If so, it returns for
// each place the items of later lists that differ from the item of the first list, or nil if no
// item differs. Most lists are aligned. If they are also equal, aligned allocates no memory.
func aligned[S ~[]T, T any](lists []S, l level[T]) (more [][]*T, ok bool) {
	base := lists[0]
	for _, list := range lists[1:] {
		if len(list) != len(base) {
			return nil, false
		}
	}
	for _, list := range lists[1:] {
		if sameBacking(base, list) {
			continue
		}
		for i := range list {
			if l.key(&base[i]) != l.key(&list[i]) {
				return nil, false
			}
			if l.same(&base[i], &list[i]) {
				continue
			}
			if more == nil {
				more = make([][]*T, len(base))
			}
			if more[i] == nil {
				more[i] = make([]*T, 0, len(lists)-1)
			}
			more[i] = append(more[i], &list[i])
		}
	}
	return more, true
}

// mergeAligned copies the base when it finds the first item that differs.
func mergeAligned[S ~[]T, T any](base S, more [][]*T, l level[T]) (S, bool) {
	out, changed := base, false
	for i := range more {
		if len(more[i]) == 0 {
			continue
		}
		item, differs := l.merge(&base[i], more[i])
		if !differs {
			continue
		}
		if !changed {
			out, changed = append(make(S, 0, len(base)), base...), true
		}
		out[i] = item
	}
	return out, changed
}

// sameBacking reports whether two slices are the same memory.
func sameBacking[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
