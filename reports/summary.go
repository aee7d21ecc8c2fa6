package reports

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// SummaryOptions says how to write a summary. The zero value means plain text without paths.
type SummaryOptions struct {
	// Color asks for ANSI colours. Only the caller knows whether the output goes to a terminal.
	Color bool
	// Dir is where [WriteAll] wrote the report. If it is empty, the summary has no paths.
	Dir string
	// Wide asks for a line for every invariant of a run, also for those that held or were not tested.
	Wide bool
}

// terminal collects a text for a terminal.
type terminal struct {
	strings.Builder
	SummaryOptions
	columns int
}

// verdict begins the text with the verdict.
func (t *terminal) verdict(o invariant.Outcome, sentence string) { t.headed(o, Word(o), sentence) }

// headed begins the text with another word than that of the outcome.
func (t *terminal) headed(o invariant.Outcome, word, sentence string) {
	fmt.Fprintf(t, "%s %s\n\n", t.paint(o, word+":"), plain(sentence))
}

// sign is the coloured sign of an outcome.
func (t *terminal) sign(o invariant.Outcome) string { return t.paint(o, sign(o)) }

func (t *terminal) paint(o invariant.Outcome, s string) string {
	if !t.Color {
		return s
	}
	color := map[invariant.Outcome]string{invariant.OutcomePass: "32", invariant.OutcomeFail: "31", invariant.OutcomeKnown: "33"}[o]
	return "\x1b[" + cmp.Or(color, "36") + "m" + s + "\x1b[0m"
}

// end names the files with more details, and writes the text.
func (t *terminal) end(w io.Writer, files ...string) error {
	if t.Dir != "" {
		t.WriteString("\n")
		for _, f := range files {
			fmt.Fprintln(t, filepath.Join(t.Dir, f))
		}
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// WriteSummary writes for a terminal the verdict, a line for each invariant that failed or proved
// too little, a line for all that held, a line for all that the run does not test, and the files
// with more details. With opts.Wide, every invariant has a line.
func WriteSummary(w io.Writer, r RunReport, opts SummaryOptions) error {
	t := &terminal{SummaryOptions: opts}
	t.verdict(r.Verdict.Outcome, r.Verdict.Sentence)
	if why, _, _ := strings.Cut(r.Metadata.Error, "\n"); why != "" && r.Verdict.Outcome == invariant.OutcomeFail { // otherwise the verdict says it
		fmt.Fprintf(t, "The run ended early: %s\n\n", plain(sentence(why)))
	}
	r.Metadata.summarize(t)
	if r.Metadata.Unjudged != "" { // each invariant would repeat this
		return t.end(w, HTMLFile, JSONFile, JUnitFile)
	}
	groups := newInvariantGroups(r)
	if opts.Wide {
		groups = invariantGroups{Open: r.Invariants}
	}
	width := 0
	for _, i := range groups.Open {
		width = max(width, len(i.Name))
	}
	for _, i := range groups.Open {
		line := fmt.Sprintf("%s %-*s  %s", t.sign(i.Word()), width, plain(i.Name), plain(shortReason(r, i)))
		fmt.Fprintln(t, strings.TrimRight(line, " "))
	}
	if len(groups.Held) > 0 {
		fmt.Fprintf(t, "%s %s held over %s checks: %s\n", t.sign(invariant.OutcomePass), counted(len(groups.Held), "invariant"),
			grouped(checked(groups.Held)), plain(names(groups.Held)))
	}
	if len(groups.Idle) > 0 {
		fmt.Fprintf(t, "– No request in this run tests %s: %s\n", counted(len(groups.Idle), "invariant"), plain(names(groups.Idle)))
	}
	if o, ok := r.largestUnruled(); ok {
		fmt.Fprintf(t, "\nOf the requests that had to be passed on, no invariant rules on %s of %s (%s, %s): %s.\n",
			grouped(o.Unruled), grouped(o.Of), plain(o.Class), plain(o.Answer), plain(o.Reason))
	}
	for _, k := range r.Verdict.Missing {
		fmt.Fprintf(t, "\nFinding %d did not appear, although this scenario shows it in released versions. It may be fixed. (%s)\n", k.Finding,
			plain(k.Title))
	}
	return t.end(w, HTMLFile, JSONFile, JUnitFile)
}

// largestUnruled is the most frequent kind of request on which no invariant rules.
func (r RunReport) largestUnruled() (largest invariant.TakenOut, ok bool) {
	for _, i := range r.Invariants {
		for _, o := range i.TakenOut {
			if o.Unruled > largest.Unruled {
				largest, ok = o, true
			}
		}
	}
	return largest, ok
}

func shortReason(r RunReport, i Invariant) string {
	var s string
	switch i.Outcome {
	case invariant.OutcomeFail:
		s = "violated " + i.Accounted()
		if i.Checked > 0 {
			s += ", " + grouped(i.Checked) + " checked"
		}
	case invariant.OutcomePass:
		s = "held over " + counted(i.Checked, "check")
	default: // the verdict says why the run ended early
		s = cmp.Or(strings.TrimSuffix(strings.TrimSuffix(i.Reason, invariant.EndedEarly(r.Metadata.Error)), "; "), "the run ended early")
	}
	if !r.Decides(i) {
		s += " (beyond the KEP)"
	}
	return s
}
