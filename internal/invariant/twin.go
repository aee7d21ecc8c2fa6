package invariant

import (
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// Twin says which server of a request has the host name of another server. The two have one
// identity and one endpoint lease, so peers take them for one server, at the address that either of
// them wrote last.
type Twin string

// These are all twins. In each, "all servers" are those that could have served the request, or for
// a merged document those that serve what it lacks.
const (
	TwinNone Twin = "" // also if some of these servers has a host name of its own
	// TwinAsked means that all servers have the host name of the asked server, which takes them for
	// itself.
	TwinAsked Twin = "asked server"
	// TwinTarget means that the request was passed on to a server that could not serve it, and which
	// has the host name of one that could.
	TwinTarget Twin = "target"
	// TwinServing means that all servers have the host name of a server that could not serve the
	// request. It may have ended shortly before: it takes the lease of both with it.
	TwinServing Twin = "serving server"
)

// words says it for people.
func (t Twin) words() string { return "another server has the host name of the " + string(t) }

// twin is another process with the host name of a process.
type twin struct {
	*setting
	window // in which both processes exist
	// until is when peers know the process again, if the other process has ended.
	until history.Time
}

// indexTwins finds the processes with one host name.
func (f *Facts) indexTwins() {
	all := f.settingsInOrder()
	for _, one := range all {
		for _, other := range all {
			both := window{max(one.life.from, other.life.from), min(one.life.to, other.life.to)}
			if (one.SharesHost == other.Server || other.SharesHost == one.Server) && both.from < both.to {
				one.twins = append(one.twins, twin{other, both, f.restored(one, both.to)})
				f.twins = true
			}
		}
	}
}

// restored is when peers know a process again after another one with the same host name has ended.
// The process writes the lease again at its next renewal.
func (f *Facts) restored(s *setting, ended history.Time) history.Time {
	latest := later(ended, endpointRenewal+f.bounds.Staleness)
	for _, l := range s.leases {
		if flag, _ := s.notOwn(l.Advertised); flag == "" && l.Advertised != "" && l.Last >= ended {
			return min(latest, later(max(l.First, ended), f.bounds.Staleness))
		}
	}
	return latest
}

// twinAt is TwinAsked if another process had the host name of this one, at a time or until shortly
// before.
func (s *setting) twinAt(at history.Time) Twin {
	if slices.ContainsFunc(s.twins, func(t twin) bool { return t.from <= at && at <= t.until }) {
		return TwinAsked
	}
	return TwinNone
}

// takesForItself reports whether the asked server takes all servers that could have served the
// operation for itself.
func (f *Facts) takesForItself(o *observation) bool {
	return f.twin(o, f.candidates(o, *o.situation)) == TwinAsked
}

// twinsOf returns the twins of the processes that a server had in w.
func (f *Facts) twinsOf(s *server, w window) (all []twin) {
	for _, span := range s.line {
		if one := f.settings[process{s.name, span.incarnation}]; one != nil && span.overlaps(w) {
			all = append(all, one.twins...)
		}
	}
	return all
}

// share reports whether two servers have one host name at any time in w.
func (f *Facts) share(one, other *server, w window) bool {
	return slices.ContainsFunc(f.twinsOf(one, w), func(t twin) bool { return t.server == other && t.overlaps(w) })
}

// twin is the twin of a violation in the response to o.
func (f *Facts) twin(o *observation, candidates []Candidate) Twin {
	switch {
	case !f.twins:
		return TwinNone
	case o.resource == nil || o.resource.key == (key{}):
		return f.twinOf(o, f.sourcesOfMissing(o))
	}
	var serving []*server
	for _, c := range candidates {
		serving = append(serving, f.byName[c.Server])
	}
	if !o.forwarded() {
		return f.twinOf(o, serving)
	}
	target := f.byName[o.hops[len(o.hops)-1].Server]
	if target == nil || target == o.asked || slices.Contains(serving, target) || slices.Contains(serving, o.asked) ||
		!slices.ContainsFunc(serving, func(s *server) bool { return f.share(s, target, o.window) }) {
		return TwinNone
	}
	return TwinTarget
}

// twinOf is the twin if the asked server answered itself, and these are all servers.
func (f *Facts) twinOf(o *observation, all []*server) Twin {
	with := func(has func(*server) bool) bool {
		return len(all) > 0 && !slices.ContainsFunc(all, func(s *server) bool { return s == o.asked || !has(s) })
	}
	switch {
	case with(func(s *server) bool { return f.share(s, o.asked, o.window) }):
		return TwinAsked
	case with(func(s *server) bool {
		return slices.ContainsFunc(f.twinsOf(s, o.window), func(t twin) bool {
			return !slices.Contains(all, t.server) && (window{t.from, t.until}).overlaps(o.window)
		})
	}):
		return TwinServing
	}
	return TwinNone
}

// sourcesOfMissing returns the servers that serve what a merged document lacks, or nil if it lists
// what no server serves.
func (f *Facts) sourcesOfMissing(o *observation) (all []*server) {
	doc, ok := f.merged(o.op)
	truth := f.truthFor(o)
	union := f.union(truth, o.op.Path)
	if !ok || doc == nil || union == nil {
		return nil
	}
	c := f.completeness(doc, o.op.Path, truth, union)
	if len(c.surplus) > 0 {
		return nil
	}
	for _, s := range f.servers {
		if own := s.servedAt(o.op.Start).doc; own != nil {
			lists := listing(own, o.op.Path)
			if slices.ContainsFunc(c.missing, func(e element) bool { return lists[e] }) {
				all = append(all, s)
			}
		}
	}
	return all
}
