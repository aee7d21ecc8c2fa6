// Package share divides a capacity among callers, so that no caller can use up the others' share. A
// [Pool] refuses what is more than a caller's share, [Places] lets it wait.
package share

import "sync"

// left says when a caller may take more: the free capacity must be more than left times the units
// that the caller has. So a caller gets at most a quarter of the capacity that the callers before
// it have not taken. After four callers that take all they can, a third is left for others. (This
// is the "dynamic threshold" of shared switch buffers, Choudhury and Hahne, 1998.)
const left = 3

// Pool counts what callers have taken. The zero value is a pool of which nothing is taken. It is
// safe for concurrent use.
type Pool struct {
	mu   sync.Mutex
	used int
	by   map[string]int
}

// Take takes n units for a caller, and reports whether the capacity and the caller's share allow
// it. A caller that has nothing gets n units as long as n units are free.
func (p *Pool) Take(caller string, n, capacity int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used+n > capacity || left*p.by[caller] >= capacity-p.used {
		return false
	}
	if p.by == nil {
		p.by = map[string]int{}
	}
	p.used += n
	p.by[caller] += n
	return true
}

// Give returns n units that the caller has taken. It deletes a caller that has nothing left.
func (p *Pool) Give(caller string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= n
	if p.by[caller] -= n; p.by[caller] <= 0 {
		delete(p.by, caller)
	}
}

// Used returns how many units are taken.
func (p *Pool) Used() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// Callers returns how many callers have taken something.
func (p *Pool) Callers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.by)
}
