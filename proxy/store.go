package proxy

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Store holds the present [Table], which many observe and read. It is safe for concurrent use; reading never waits.
type Store struct {
	table atomic.Pointer[Table]

	mu          sync.Mutex // held through each change, so that none is lost
	subscribers []chan struct{}
}

// NewStore returns a store that knows nothing yet.
func NewStore(p Policy, self ServerID) *Store {
	s := &Store{}
	s.table.Store(NewTable(p, self))
	return s
}

// StoreOf returns a store that knows what a table does.
func StoreOf(t *Table) *Store {
	s := &Store{}
	s.table.Store(t)
	return s
}

// Table returns what is known now.
func (s *Store) Table() *Table { return s.table.Load() }

// Observe adds what was learnt, in order, and returns what is known then.
func (s *Store) Observe(events ...Event) *Table {
	seen := s.table.Load()
	after := seen
	for _, e := range events {
		after = after.Observe(e)
	}
	if after == seen {
		return seen // most is nothing new, and need not wait for what is
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.table.Load()
	if before != seen { // somebody was faster
		after = before
		for _, e := range events {
			after = after.Observe(e)
		}
	}
	if after == before {
		return before
	}
	s.table.Store(after)
	for _, changed := range s.subscribers {
		select {
		case changed <- struct{}{}:
		default: // told already, and has not looked yet
		}
	}
	return after
}

// Subscribe returns a channel that receives whenever the table has changed since the last receive. stop ends it; the channel is
// never closed.
func (s *Store) Subscribe() (changed <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribers = append(s.subscribers, c)
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.subscribers = slices.DeleteFunc(s.subscribers, func(o chan struct{}) bool { return o == c })
	}
}
