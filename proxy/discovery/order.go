package discovery

import (
	"maps"
	"slices"
)

// mergeOrders returns all names of several lists. Where the lists say nothing about the order of
// two names, the order is alphabetical. If the lists contradict each other, it is alphabetical for
// all. A list that has every name once is the result itself. Source: k8s.io/apimachinery,
// pkg/util/sort, which releases before 1.35 do not have.
func mergeOrders(lists [][]string) []string {
	next := map[string]map[string]bool{} // the names that must follow a name
	waits := map[string]int{}            // for how many names a name waits
	for _, list := range lists {
		for i, name := range list {
			waits[name] += 0
			if i == 0 || next[list[i-1]][name] {
				continue
			}
			if next[list[i-1]] == nil {
				next[list[i-1]] = map[string]bool{}
			}
			next[list[i-1]][name] = true
			waits[name]++
		}
	}
	names := slices.Sorted(maps.Keys(waits))
	for _, list := range lists {
		if len(list) == len(names) && slices.Equal(slices.Compact(slices.Sorted(slices.Values(list))), names) {
			return list
		}
	}
	free := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return waits[name] > 0 })
	var order []string
	for len(free) > 0 {
		name := free[0]
		free = free[1:]
		order = append(order, name)
		for follower := range next[name] { // in any order
			if waits[follower]--; waits[follower] == 0 {
				at, _ := slices.BinarySearch(free, follower)
				free = slices.Insert(free, at, follower)
			}
		}
	}
	if len(order) < len(names) {
		return names
	}
	return order
}
