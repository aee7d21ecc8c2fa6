package reports

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// outcomes are the outcomes whose sign and colour stand for a result.
var outcomes = map[Result]invariant.Outcome{
	ResultPassed: invariant.OutcomePass, ResultFailed: invariant.OutcomeFail,
	ResultInconclusive: invariant.OutcomeInconclusive, ResultSkipped: invariant.OutcomeInconclusive,
}

// WriteConformanceSummary writes what someone at a terminal wants to know: the result, what each scenario came to, and why it did not pass, what is
// wrong with the negative control and what it does not prove, where to read on.
func WriteConformanceSummary(w io.Writer, c ConformanceReport, opts SummaryOptions) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n\n", paint(opts, outcomes[c.Result], strings.ToUpper(string(c.Result))+":"), plain(c.Sentence))
	for _, p := range c.Profiles {
		fmt.Fprintf(&b, "%-9s %s: %d passed, %d failed, %d inconclusive, %d skipped\n", p.Name, p.Result, p.Passed, p.Failed, p.Inconclusive, p.Skipped)
	}
	fmt.Fprintf(&b, "%-9s %s: %s that must fail\n\n", "control", c.Control.Result, counted(len(c.Control.Runs), "run"))
	for _, s := range c.Scenarios {
		if s.Core.Reason == NotReached {
			continue
		}
		line := fmt.Sprintf("%s %-28s %s", paint(opts, outcomes[s.Core.Result], sign(outcomes[s.Core.Result])), plain(s.Name), s.Core.Result)
		if s.Core.Reason != "" {
			line += ": " + plain(s.Core.Reason)
		}
		b.WriteString(line + "\n")
		if e := s.Extended; c.Metadata.Strict && e.Reason != s.Core.Reason && (e.Result == ResultFailed || e.Result == ResultInconclusive) {
			fmt.Fprintf(&b, "%s %-28s %s beyond the KEP: %s\n", paint(opts, outcomes[e.Result], sign(outcomes[e.Result])), plain(s.Name), e.Result, plain(e.Reason))
		}
	}
	if names := c.named(func(s ConformanceScenario) bool { return s.Core.Reason == NotReached }); len(names) > 0 {
		fmt.Fprintf(&b, "not run: %s\n", plain(strings.Join(names, ", ")))
	}
	notRun := 0
	for _, r := range c.Control.Runs {
		if r.Reason == NotReached {
			notRun++
			continue
		}
		if r.Result != ResultPassed {
			fmt.Fprintf(&b, "%s control %s on %s: %s\n", paint(opts, invariant.OutcomeFail, sign(invariant.OutcomeFail)), plain(r.Scenario), plain(r.Subject), plain(r.Reason))
		}
	}
	if notRun > 0 {
		fmt.Fprintf(&b, "not run: %s\n", counted(notRun, "control run"))
	}
	for _, u := range c.Control.Unproven {
		fmt.Fprintf(&b, "no control run of %s: %s\n", plain(u.Scenario), plain(u.Reason))
	}
	if opts.Dir != "" {
		fmt.Fprintf(&b, "\n%s\n%s\n", filepath.Join(opts.Dir, ConformanceHTML), filepath.Join(opts.Dir, ConformanceFile))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
