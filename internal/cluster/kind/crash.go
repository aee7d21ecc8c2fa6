package kind

// watch records a crash. The kubelet of the server starts it again, by and by; that is its next incarnation.
func (s *server) watch(i *incarnation) {
	if !s.Watch(s.cluster.ctx, i) {
		return
	}
	if living := pids(i.Living()); len(living) > 0 { // half a server is nothing that a scenario could mean
		_, _ = inNode(s.cluster.ctx, s.place.Node, append([]string{"kill", "-KILL"}, living...)...)
	}
	for _, p := range i.Processes() {
		if err := p.gone(s.cluster.ctx, stopTimeout); err != nil {
			return
		}
	}
	s.revive(i)
}

// revive follows the kubelet, which starts a crashed server again, unless a step has taken the matter up meanwhile.
func (s *server) revive(crashed *incarnation) {
	s.Lock()
	defer s.Unlock()
	ctx := s.cluster.revival
	if s.Last() != crashed || crashed.Expected() || ctx.Err() != nil {
		return
	}
	if err := s.launch(ctx, s.Begin(), func(string) error { return nil }); err != nil && ctx.Err() == nil {
		s.Status("%s: %v", s.place.Name, err)
	}
}

// RecordPanics records, as crashes at the end of the run, panics that incarnations survived but left in their logs. It does not wait for a server that has
// crashed to come back, which may take minutes.
func (c *Cluster) RecordPanics() {
	c.endRevival()
	for _, p := range c.places {
		c.servers[p.Name].RecordPanics()
	}
}
