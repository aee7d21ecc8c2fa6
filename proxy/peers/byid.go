package peers

import (
	"cmp"
	"slices"

	"github.com/skewproof/skewproof/proxy"
)

// byID holds values of servers, sorted by identity, with the zero value empty. The simulator copies
// it thousands of times a second: with few servers, slices.Clone is faster than copying a map.
type byID[V any] []entry[V]

type entry[V any] struct {
	id    proxy.ServerID
	value V
}

func (m byID[V]) find(id proxy.ServerID) (int, bool) {
	return slices.BinarySearchFunc(m, id, func(e entry[V], id proxy.ServerID) int { return cmp.Compare(e.id, id) })
}

func (m byID[V]) has(id proxy.ServerID) bool {
	_, ok := m.find(id)
	return ok
}

// get returns the value of a server, the zero value if there is none.
func (m byID[V]) get(id proxy.ServerID) (value V) {
	if i, ok := m.find(id); ok {
		return m[i].value
	}
	return value
}

func (m *byID[V]) set(id proxy.ServerID, value V) {
	i, ok := m.find(id)
	if !ok {
		*m = slices.Insert(*m, i, entry[V]{id: id})
	}
	(*m)[i].value = value
}

func (m *byID[V]) remove(id proxy.ServerID) {
	if i, ok := m.find(id); ok {
		*m = slices.Delete(*m, i, i+1)
	}
}
