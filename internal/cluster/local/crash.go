package local

import "context"

// watch records a crash, and ends what is left of the server: StartServer shall find a clean host.
func (s *server) watch(i *incarnation) {
	if s.Watch(context.Background(), i) {
		_ = kill(i.Unit) // of processes that have ended, or are ours to kill
	}
}

// RecordPanics records, as crashes at the end of the run, panics that incarnations survived but left in their logs.
func (c *Cluster) RecordPanics() {
	for _, p := range c.places {
		c.servers[p.Name].RecordPanics()
	}
}
