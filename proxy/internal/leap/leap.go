// Package leap makes times like those of [time.Now] after a change of the clock (for tests).
package leap

import (
	"time"
	"unsafe"
)

// layout is the memory layout of a [time.Time] (GOROOT, time/time.go). A test checks that it still
// is.
type layout struct {
	wall uint64 // 1 bit: it has a monotonic reading; 33 bits of seconds; 30 bits of nanoseconds
	ext  int64  // the monotonic reading
	loc  *time.Location
}

const (
	hasMonotonic = 1 << 63
	secondBits   = 30
)

// Wall returns a time whose wall clock is ahead by whole seconds, or behind if ahead is negative.
// Its monotonic clock does not change. There is no other way to make such a time: if a process may
// set the clock, it sets the clock of the machine. Wall panics if the time has no monotonic
// reading. Times of [time.Now] have one.
func Wall(t time.Time, ahead time.Duration) time.Time {
	l := (*layout)(unsafe.Pointer(&t)) //nolint:gosec // see above
	if l.wall&hasMonotonic == 0 {
		panic("leap: the time has no monotonic reading")
	}
	l.wall += uint64(int64(ahead/time.Second)) << secondBits
	return t
}
