package replay

import (
	"fmt"
	"io"
	"slices"
	"strings"

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

// Recognise says in a sentence whether the violation of a file was seen again.
func Recognise(r *search.Repro, v invariant.Verdict) string {
	switch {
	case v.Outcome == invariant.OutcomePass:
		return fmt.Sprintf("%s is not violated.", r.Invariant)
	case v.Outcome != invariant.OutcomeFail:
		return fmt.Sprintf("%s is not seen to be violated: %s.", r.Invariant, v.Reason)
	case sameCause(r, v) != nil:
		return fmt.Sprintf("%s is violated, in the same way as in the file: %s.", r.Invariant, r.Cause)
	}
	var causes []string
	for _, e := range v.Evidence {
		causes = append(causes, e.Cause)
	}
	return fmt.Sprintf("%s is violated, but in another way (%s) than in the file (%s).", r.Invariant, strings.Join(causes, "; "), r.Cause)
}

// sameCause returns the evidence that has the cause of the file; nil if there is none.
func sameCause(r *search.Repro, v invariant.Verdict) *invariant.Evidence {
	if i := slices.IndexFunc(v.Evidence, func(e invariant.Evidence) bool { return e.Cause == r.Cause }); i >= 0 {
		return &v.Evidence[i]
	}
	return nil
}

// CompareTraces says in a sentence whether a run of the simulator was the run of the file. version is that of this skewproof.
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

// JudgeReal judges the run of a file on real servers, and says whether it shows the violation of the file: the same invariant with the same
// cause, on a resource that the file asks for. Real servers serve many more resources, and may have other violations there.
func JudgeReal(out io.Writer, r *search.Repro, h *history.History) invariant.Outcome {
	v := VerdictOn(judgeRequested(h, r), r)
	fmt.Fprintf(out, "\nOn what the file asks for, %s\n", Recognise(r, v))
	if e := sameCause(r, v); e != nil {
		fmt.Fprintf(out, "  in the simulator:  %s\n  on real processes: %s\n", r.Sentence, e.Sentence)
	}
	return v.Outcome
}

// judgeRequested judges the operations on what the file asks for. All operations count as pressure: if there were enough of them, no more is
// demanded of those that are judged.
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

// keepRequested keeps the operations on the resources that the file asks for, and discovery if the file asks for it.
func keepRequested(h *history.History, r *search.Repro) {
	h.Operations = slices.DeleteFunc(h.Operations, func(o history.Operation) bool {
		for _, q := range r.Case.Requests {
			if q.GVR == o.GVR && q.Subresource == o.Subresource && (q.Verb == history.VerbDiscovery) == (o.Verb == history.VerbDiscovery) {
				return false
			}
		}
		return true
	})
}
