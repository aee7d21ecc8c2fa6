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

// VerdictOn returns the verdict on the invariant that a file is about.
func VerdictOn(verdicts []invariant.Verdict, r *search.Repro) invariant.Verdict {
	for _, v := range verdicts {
		if v.Name == r.Invariant {
			return v
		}
	}
	return invariant.Verdict{Name: r.Invariant, Outcome: invariant.OutcomeInconclusive, Reason: "this skewproof has no invariant of that name"}
}

// Recognise says in a sentence whether the run shows the violation of the file again.
func Recognise(r *search.Repro, v invariant.Verdict) string {
	switch {
	case v.Outcome == invariant.OutcomePass:
		return fmt.Sprintf("%s is not violated.", r.Invariant)
	case v.Outcome != invariant.OutcomeFail:
		return fmt.Sprintf("%s is not seen to be violated: %s.", r.Invariant, v.Reason)
	case sameKind(r, v) != nil:
		return fmt.Sprintf("%s is violated, in the same way as in the file: %s.", r.Invariant, r.Cause)
	}
	var causes []string
	for _, e := range v.Evidence {
		causes = append(causes, e.Cause)
	}
	return fmt.Sprintf("%s is violated, but in another way (%s) than in the file (%s).", r.Invariant, strings.Join(causes, "; "), r.Cause)
}

// sameKind returns evidence of the same kind as the violation of the file, whatever its
// circumstances; nil if there is none.
func sameKind(r *search.Repro, v invariant.Verdict) *invariant.Evidence {
	if i := slices.IndexFunc(v.Evidence, func(e invariant.Evidence) bool { return e.Signature.Core() == r.Signature.Core() }); i >= 0 {
		return &v.Evidence[i]
	}
	return nil
}

// CompareTraces says in a sentence whether a run in the simulator has the same trace as the file.
// version is the version of this skewproof.
func CompareTraces(r *search.Repro, hash uint64, version string) string {
	is := search.HashText(hash)
	if is == r.Hash {
		return fmt.Sprintf("The trace is that of the file (%s).", is)
	}
	by := "a skewproof that does not say of which commit it was"
	if r.Commit != "" {
		by = "skewproof " + r.Commit
	}
	return fmt.Sprintf("The trace is another (%s, in the file %s): code or policy have changed since the file was written, by %s. "+
		"This is skewproof %s.", is, r.Hash, by, version)
}

// JudgeReal judges the run of a file on real servers, and says whether the run shows the violation
// of the file: the same invariant with the same cause, on a resource that the file requests. Real
// servers serve many more resources, and may have other violations there.
func JudgeReal(out io.Writer, r *search.Repro, h *history.History) invariant.Outcome {
	v := VerdictOn(judgeRequested(h, r), r)
	fmt.Fprintf(out, "\nOn what the file asks for, %s\n", Recognise(r, v))
	if e := sameKind(r, v); e != nil {
		fmt.Fprintf(out, "  in the file:       %s\n  on real processes: %s\n", r.Sentence, e.Sentence)
	}
	return v.Outcome
}

// judgeRequested judges the operations on the resources that the file requests. If all operations
// together are enough pressure, the judged ones need not be enough by themselves.
func judgeRequested(h *history.History, r *search.Repro) []invariant.Verdict {
	answered := 0
	for _, o := range h.Operations {
		if o.Status != 0 {
			answered++
		}
	}
	if answered >= h.Run.Pressure.Operations {
		h.Run.Pressure.Operations = 0
	}
	keepRequested(h, r)
	return invariant.Judge(h)
}

// keepRequested keeps the operations on the resources that the file requests. It keeps discovery if
// the file requests discovery.
func keepRequested(h *history.History, r *search.Repro) {
	if len(r.Case.Requests) == 0 { // the violation was found by a load, and not by a request of the file
		return
	}
	h.Operations = slices.DeleteFunc(h.Operations, func(o history.Operation) bool {
		for _, q := range r.Case.Requests {
			if q.GVR == o.GVR && q.Subresource == o.Subresource && (q.Verb == history.VerbDiscovery) == (o.Verb == history.VerbDiscovery) {
				return false
			}
		}
		return true
	})
}

// WriteStory writes a description of a run of a file: the steps, the crashes of servers, and the
// violations of the invariant.
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
	// Lines less than a microsecond apart keep the order in which they were added.
	slices.SortStableFunc(all, func(a, b line) int {
		return cmp.Compare(a.at.Truncate(time.Microsecond), b.at.Truncate(time.Microsecond))
	})
	return all
}
