package reports

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// SummaryOptions says how a summary is written. The zero value is plain text without paths.
type SummaryOptions struct {
	// Color asks for ANSI colours. Only the caller knows whether a terminal is at the other end.
	Color bool
	// Dir is where [WriteAll] wrote the report; empty leaves out the paths.
	Dir string
}

// WriteSummary writes what someone at a terminal wants to know: the verdict, a line for each invariant, where to read on.
func WriteSummary(w io.Writer, r RunReport, opts SummaryOptions) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n\n", paint(opts, r.Verdict.Outcome, strings.ToUpper(string(r.Verdict.Outcome))+":"), plain(r.Verdict.Sentence))
	width := 0
	for _, i := range r.Invariants {
		width = max(width, len(i.Name))
	}
	for _, i := range r.Invariants {
		line := fmt.Sprintf("%s %-*s  %s", paint(opts, i.Verdict, sign(i.Verdict)), width, plain(i.Name), plain(shortReason(r, i)))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	if opts.Dir != "" {
		b.WriteString("\n")
		for _, f := range []string{HTMLFile, JSONFile, JUnitFile} {
			fmt.Fprintf(&b, "%s\n", filepath.Join(opts.Dir, f))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func shortReason(r RunReport, i Invariant) string {
	s := ""
	switch i.Verdict {
	case invariant.OutcomePass:
		s = grouped(i.Checked) + " checked"
	case invariant.OutcomeFail:
		s = "violated " + times(i.Violations)
		if i.Checked > 0 {
			s += ", " + grouped(i.Checked) + " checked"
		}
	default:
		s = i.Reason
	}
	if !r.Decides(i) {
		s += " (beyond the KEP)"
	}
	return s
}

// plain keeps what servers wrote from steering the terminal: control characters, which escape sequences begin with, are
// shown as spaces.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

func paint(opts SummaryOptions, o invariant.Outcome, s string) string {
	if !opts.Color {
		return s
	}
	color := map[invariant.Outcome]string{invariant.OutcomePass: "32", invariant.OutcomeFail: "31"}[o]
	if color == "" {
		color = "33"
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}
