package replay

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/sim/search"
)

// WriteStory writes what happened in a run of a file: the steps, the crashes of servers, and what violates the invariant.
func WriteStory(out io.Writer, r *search.Repro, h *history.History, v invariant.Verdict) {
	var servers []string
	for _, s := range r.Case.Servers {
		servers = append(servers, s.Name+" "+s.Version)
	}
	policy := r.Spec.Policy
	if len(r.Spec.Changes) > 0 {
		policy += " with " + strings.Join(r.Spec.Changes, ", ")
	}
	fmt.Fprintf(out, "Policy %s, %d servers: %s. Seed %d.\n\n", policy, len(servers), strings.Join(servers, ", "), r.Seed)
	for _, l := range storyLines(h, v) {
		fmt.Fprintf(out, "%10.3fs  %s\n", l.at.Seconds(), l.text)
	}
}

// line is one event of a story.
type line struct {
	at   history.Time
	text string
}

func storyLines(h *history.History, v invariant.Verdict) []line {
	var all []line
	first := history.Time(0)
	for _, l := range h.Lifecycle {
		switch {
		case l.State == history.StateReady && l.Incarnation == 1:
			first = max(first, l.At)
		case l.State == history.StateCrashed:
			all = append(all, line{l.At, l.Server + " crashed: " + l.Detail})
		}
	}
	all = append(all, line{first, "every server is ready"})
	for _, s := range h.Steps {
		text := s.Sentence
		if took := s.End - s.Start; s.Disturbs && took > time.Millisecond {
			text += fmt.Sprintf(" (done after %s)", took.Round(time.Millisecond))
		}
		if s.Error != "" {
			text += ": " + s.Error
		}
		if s.Disturbs || s.Error != "" {
			all = append(all, line{s.Start, text})
		}
	}
	for _, e := range v.Evidence {
		text := "VIOLATION: " + e.Sentence
		if e.Count > 1 {
			text += fmt.Sprintf(" (the first of %d alike, the last at %s)", e.Count, e.Last.Round(time.Millisecond))
		}
		at := e.First
		if len(e.Operations) > 0 {
			at = e.Operations[len(e.Operations)-1].Start
		}
		all = append(all, line{at, text})
	}
	// Lines that are less than a microsecond apart keep the order in which they were added.
	slices.SortStableFunc(all, func(a, b line) int {
		return cmp.Compare(a.at.Truncate(time.Microsecond), b.at.Truncate(time.Microsecond))
	})
	return all
}
