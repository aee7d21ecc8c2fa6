package invariant

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// leaseLasts is for how long an identity lease keeps a server that does not renew it among the living.
// Source: identityLeaseDurationSeconds in k8s.io/kubernetes, pkg/controlplane/apiserver/server.go.
const leaseLasts = time.Hour

// forgotten is when a server had not renewed its leases for so long that they expire, because it was paused or cut off from etcd. Its peers
// may take it for gone then, sooner or later: the lease is all that says that it lives.
func (f *Facts) forgotten(name string, line timeline) []window {
	var out []window
	add := func(from, to history.Time) {
		if expires := later(from, leaseLasts-renewal); expires < to {
			out = append(out, window{expires, to})
		}
	}
	for _, s := range line {
		if s.phase == phasePaused {
			add(s.from, s.to)
		}
	}
	for _, fault := range f.faults[link{name, etcd}] {
		if !fault.Blocks {
			continue
		}
		until := fault.End
		for _, left := range f.regained {
			if left.ID == fault.ID && left.From == name {
				until = max(until, left.End)
			}
		}
		add(fault.Start, until)
	}
	return out
}

// renewal is how long before a server fell silent its lease may have been renewed last.
const renewal = 10 * time.Second

// without makes it unknown what the server was to others in a window.
func (l timeline) without(w window) timeline {
	var out timeline
	for _, s := range l {
		if !s.window.overlaps(window{w.from, w.to - 1}) {
			out = append(out, s)
			continue
		}
		if s.from < w.from {
			before := s
			before.to = w.from
			out = append(out, before)
		}
		hidden := s
		hidden.from, hidden.to = max(s.from, w.from), min(s.to, w.to)
		if s.phase != phaseDown {
			hidden.phase, hidden.up = phaseUnknown, false
		}
		out = append(out, hidden)
		if w.to < s.to {
			after := s
			after.from = w.to
			out = append(out, after)
		}
	}
	return out
}
