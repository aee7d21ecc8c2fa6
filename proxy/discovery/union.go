package discovery

// union is the union of several lists, with each item once. It has the order of the first list. A
// new item of a later list goes right after its predecessor in that list. The time to add a list is
// linear in the list's length.
//
// Items of a higher rank always come first. If an item's predecessor has a higher rank, the item
// goes to the front of its own rank. If the predecessor has a lower rank, the item goes to the end
// of its own rank. Only versions have ranks. All other items have the rank zero.
//
// If the union itself is added as the first list, and then the lists from which it was made, the
// order is the same. This makes the merge associative.
type union[T any] struct {
	key   func(*T) string
	same  func(a, b *T) bool
	nodes []node[T]
	index map[string]int32 // key to node
	first [ranks]int32
	last  [ranks]int32
	// orphansLast puts items without a predecessor at the end of their rank instead of the front.
	orphansLast bool
}

type node[T any] struct {
	key  string
	item *T   // from the first list that has it
	more []*T // from later lists, if they differ from item
	next int32
	rank int8
}

const none = int32(-1)

func newUnion[T any](key func(*T) string, same func(a, b *T) bool, size int) *union[T] {
	u := &union[T]{key: key, same: same, nodes: make([]node[T], 0, size), index: make(map[string]int32, size)}
	for r := range u.first {
		u.first[r], u.last[r] = none, none
	}
	return u
}

// add adds a list. rankOf is nil if all items have rank zero.
func (u *union[T]) add(list []T, rankOf []int8) {
	previous := none
	for i := range list {
		item := &list[i]
		key := u.key(item)
		n := u.find(previous, key)
		if n == none {
			var rank int8
			if rankOf != nil {
				rank = rankOf[i]
			}
			n = u.insert(previous, key, item, rank)
		} else if known := &u.nodes[n]; known.item != item && !u.same(known.item, item) {
			known.more = append(known.more, item)
		}
		previous = n
	}
}

// find first looks after the previous node, because most lists have the same order.
func (u *union[T]) find(previous int32, key string) int32 {
	if previous != none {
		if next := u.nodes[previous].next; next != none && u.nodes[next].key == key {
			return next
		}
	}
	if n, ok := u.index[key]; ok {
		return n
	}
	return none
}

func (u *union[T]) insert(previous int32, key string, item *T, rank int8) int32 {
	n := int32(len(u.nodes))
	u.nodes = append(u.nodes, node[T]{key: key, item: item, next: none, rank: rank})
	u.index[key] = n
	behind := none // the previous node of this rank; none: it goes to the front
	switch {
	case previous == none && u.orphansLast:
		behind = u.last[rank]
	case previous == none:
	case u.nodes[previous].rank == rank:
		behind = previous
	case u.nodes[previous].rank < rank:
		behind = u.last[rank]
	}
	if behind == none {
		u.nodes[n].next, u.first[rank] = u.first[rank], n
	} else {
		u.nodes[n].next, u.nodes[behind].next = u.nodes[behind].next, n
	}
	if u.nodes[n].next == none {
		u.last[rank] = n
	}
	return n
}

// each calls f with every node, in order.
func (u *union[T]) each(f func(*node[T])) {
	for rank := ranks - 1; rank >= 0; rank-- {
		for n := u.first[rank]; n != none; n = u.nodes[n].next {
			f(&u.nodes[n])
		}
	}
}
