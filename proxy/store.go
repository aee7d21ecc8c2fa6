package proxy

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Store holds the present [Table]. Make it with [NewStore]. It is safe for concurrent use.
type Store struct {
	table atomic.Pointer[Table]

	mu          sync.Mutex // held during each change, so that no change is lost
	subscribers []chan struct{}
}

// NewStore returns a store with the empty table of the server self.
func NewStore(p Policy, self ServerID) *Store { return StoreOf(NewTable(p, self)) }

// StoreOf returns a store that holds this table.
func StoreOf(t *Table) *Store {
	s := &Store{}
	s.table.Store(t)
	return s
}

// Table returns the present table.
func (s *Store) Table() *Table { return s.table.Load() }

// Observe replaces the table by one that knows the events, in their order. It returns the new
// table.
func (s *Store) Observe(events ...Event) *Table {
	seen := s.table.Load()
	after := seen.observeAll(events)
	if after == seen {
		return seen // most events change nothing, and need not wait for the lock
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.table.Load()
	if before != seen { // another goroutine was faster
		after = before.observeAll(events)
	}
	if after == before {
		return before
	}
	s.table.Store(after)
	for _, changed := range s.subscribers {
		select {
		case changed <- struct{}{}:
		default: // the channel has a value already
		}
	}
	return after
}

func (t *Table) observeAll(events []Event) *Table {
	for _, e := range events {
		t = t.Observe(e)
	}
	return t
}

// Subscribe returns a channel that receives a value if the table has changed since the last
// receive. It is never closed. stop ends the subscription.
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
