package local

import (
	"fmt"
	"sync"
)

// need watches a program that servers need and that is none of them. If it ends before released is called, the run is told: what servers answer
// from then on is not their doing.
func (c *Cluster) need(part string, u *unit) (release func()) {
	released := make(chan struct{})
	go func() {
		<-u.Over()
		select {
		case <-released:
		default:
			c.config.Lost(part, fmt.Errorf("%s ended though nobody had asked it to: %s", part, u.First().Epitaph()))
		}
	}()
	return sync.OnceFunc(func() { close(released) })
}
