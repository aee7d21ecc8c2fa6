package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/skewproof/skewproof/internal/invariant"
)

// summarize prints what the repetitions of each scenario came to. That a verdict was not the same in all of them is an exit code.
func summarize(out io.Writer, all []*benched) error {
	fmt.Fprintf(out, "%s\n", strings.Join(environment(), ", "))
	differing, total := 0, 0
	for _, b := range all {
		fmt.Fprintf(out, "\nskewproof run %s; runs: %d\n\n", strings.Join(b.words, " "), len(b.samples))
		if len(b.samples) == 0 { // it was ended early
			continue
		}
		if err := figures(out, b.samples); err != nil {
			return err
		}
		differing += verdicts(out, b.samples)
		if len(b.samples) > 1 {
			total += len(b.samples[0].verdicts)
		}
	}
	if total == 0 {
		if _, err := fmt.Fprintln(out, "\nno verdict could be compared: nothing ran twice"); err != nil {
			return err
		}
		return &exitError{code: exitInconclusive}
	}
	if _, err := fmt.Fprintf(out, "\n%d of %d verdicts differed from run to run\n", differing, total); err != nil {
		return err
	}
	if differing > 0 {
		return &exitError{code: exitInconclusive}
	}
	return nil
}

// figures prints the least, the median and the most of what was measured.
func figures(out io.Writer, samples []sample) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tleast\tmedian\tmost\t")
	row := func(name, format string, value func(sample) float64) {
		values := make([]float64, len(samples))
		for i, s := range samples {
			values[i] = value(s)
		}
		slices.Sort(values)
		fmt.Fprintf(table, "%s\t"+format+"\t"+format+"\t"+format+"\t\n", name, values[0], values[len(values)/2], values[len(values)-1])
	}
	row("wall time, s", "%.1f", func(s sample) float64 { return s.wall.Seconds() })
	row("until all servers are ready, s", "%.1f", func(s sample) float64 { return s.ready.Seconds() })
	row("requests recorded", "%.0f", func(s sample) float64 { return float64(s.operations) })
	return table.Flush()
}

// verdicts prints how often each invariant came to which verdict, and returns how many did not come to the same one every time.
func verdicts(out io.Writer, samples []sample) (differing int) {
	fmt.Fprintln(out)
	for i, v := range samples[0].verdicts {
		counts := map[invariant.Outcome]int{}
		for _, s := range samples {
			counts[s.verdicts[i].Verdict]++
		}
		var parts []string
		for _, o := range []invariant.Outcome{invariant.OutcomePass, invariant.OutcomeFail, invariant.OutcomeInconclusive} {
			if counts[o] > 0 {
				parts = append(parts, fmt.Sprintf("%s %d", o, counts[o]))
			}
		}
		if len(counts) > 1 {
			differing++
		}
		fmt.Fprintf(out, "%-24s %s\n", v.Name, strings.Join(parts, ", "))
	}
	return differing
}
