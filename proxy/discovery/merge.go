package discovery

import (
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
)

// Merge returns the union of what the sources list: of groups, versions, resources, subresources and verbs.
//
// Order. Groups come in the order of the newest server that knows them: by [Source].Version, then by Server. A group that only an older
// server knows goes right behind its predecessor there, or to the front if it has none. The same holds for
// resources, subresources and verbs. Versions likewise keep the newest server's order, and a version that only older servers know never
// goes before a more stable one (generally available, beta, alpha). It goes behind a less stable one only where the newest server
// itself prefers that one to a version as stable as the new one. Without a predecessor of its own degree it goes behind all of that
// degree, so a preferred version of the newest server is only ever replaced by a more stable one.
//
// Fields. All that is not a list (kind, scope, singular name), and short names, categories and accepted types, is that of the newest
// server that has the resource with at least one verb, else of the newest that lists it: without verbs it is only
// the bearer of subresources. Group metadata is the newest server's. A version is Current if any server has it so, since the union
// then holds a list that was refreshed; else it is what the newest server says ("Stale": an aggregated API could not be asked).
//
// Laws, for documents that name nothing twice. The result is a function of the set of sources: their order does not matter, nor
// which of them is Local, so all servers that know the same facts compute the same bytes. It is complete: it lists what a source
// lists, and nothing else. It is idempotent and associative: some of the newest sources may be replaced by their merge, labelled as
// the newest of them, and a merge of any of the sources may be added as the newest, without a change of what is listed; if it is the
// merge of all of them, not of order either.
//
// Sources are not modified; the result shares all that did not change with them, and is the newest source's own Groups if nothing
// did. The time is linear in the size of the input.
func Merge(sources []Source) Groups {
	lists := make([]Groups, 0, len(sources))
	for _, s := range newestFirst(sources, func(s *Source) (string, string) { return s.Server, s.Version }) {
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

// level is what differs between the levels of a document.
type level[T any] struct {
	key func(*T) string
	// same is true only if the second adds nothing to the first. It need not be exact, but where it is not, merge has to look.
	same func(a, b *T) bool
	// merge adds more to item and tells whether that changed anything. It keeps neither.
	merge func(item *T, more []*T) (T, bool)
	// ranks, if any, ranks the items of a list; newest is true for the first.
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

// mergeLists merges lists of one level, the newest first, and tells whether the result differs from the newest, which it else is.
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

// aligned reports whether all lists have the same keys in the same order, and if so what later lists have at each place that is not
// the same as in the first; nil if there is nothing. Most lists are aligned, and this costs no memory where they are also equal.
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

// mergeAligned copies the base when the first item differs.
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

// sameBacking reports whether two slices are one and the same.
func sameBacking[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
