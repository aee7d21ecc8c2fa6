package history

// Sharing makes operations and hops share what they have in common. The zero value is ready. It is
// not safe for concurrent use.
type Sharing struct {
	sent     map[sentKey]*Sent
	received map[receivedKey]*Received
	entries  map[entryKey]*Entry
}

// A key holds the fields in which two values most often differ. For each key, a Sharing keeps the
// last value only: comparing two values costs less than hashing one of them in full.
type (
	sentKey     struct{ server, client, user, verb, path string }
	receivedKey struct {
		status   int
		message  string
		document string
		object   string
		failure  Failure
	}
	entryKey struct {
		server, user string
		status       int
	}
)

// mostShared bounds each of the maps of a Sharing, so that one that lasts for long does not grow
// without a bound. What was shared before stays shared.
const mostShared = 1 << 18

// Operation returns o with shared parts. It keeps nothing of o that may still change.
func (s *Sharing) Operation(o Operation) Operation {
	if o.Sent == nil {
		o.Sent = &Sent{}
	}
	if o.Received == nil {
		o.Received = &Received{}
	}
	o.Sent = share(&s.sent, sentKey{o.Server, o.Client, o.User, o.Verb, o.Path}, o.Sent)
	o.Received = share(&s.received, receivedKey{o.Status, o.Message, o.Document, o.Object, o.Failure}, o.Received)
	return o
}

// Hop returns h with a shared entry. It keeps nothing of h that may still change.
func (s *Sharing) Hop(h Hop) Hop {
	if h.Entry == nil {
		h.Entry = &Entry{}
	}
	h.Entry = share(&s.entries, entryKey{h.Server, h.User, h.Status}, h.Entry)
	return h
}

// share returns a value that equals *one and that nobody changes: the last value of the key, or a
// copy of *one.
func share[K, T comparable](last *map[K]*T, key K, one *T) *T {
	if known := (*last)[key]; known != nil && *known == *one {
		return known
	}
	if *last == nil || len(*last) >= mostShared {
		*last = map[K]*T{}
	}
	kept := *one
	(*last)[key] = &kept
	return &kept
}
