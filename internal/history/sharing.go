package history

// Sharing makes operations and hops share what they have in common. The zero value is ready. It is
// not safe for concurrent use.
type Sharing struct {
	sent     map[Sent]*Sent
	received map[Received]*Received
	entries  map[Entry]*Entry
}

// mostShared bounds each of the maps of a Sharing, so that one that lasts for long does not grow
// without a bound. What was shared before stays shared.
const mostShared = 1 << 18

// Operation returns o with what is shared. It keeps nothing of o that may still change.
func (s *Sharing) Operation(o Operation) Operation {
	o.Sent, o.Received = share(&s.sent, o.Sent), share(&s.received, o.Received)
	return o
}

// Hop returns h with the shared entry. It keeps nothing of h that may still change.
func (s *Sharing) Hop(h Hop) Hop {
	h.Entry = share(&s.entries, h.Entry)
	return h
}

// share returns the shared value that equals *one. nil counts as the zero value.
func share[T comparable](all *map[T]*T, one *T) *T {
	var value T
	if one != nil {
		value = *one
	}
	if known, ok := (*all)[value]; ok {
		return known
	}
	if *all == nil || len(*all) >= mostShared {
		*all = map[T]*T{}
	}
	kept := value
	(*all)[value] = &kept
	return &kept
}
