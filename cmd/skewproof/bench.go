package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
)

// newBench repeats a scenario: how long it takes, and whether it comes to the same verdicts every time.
func newBench() *cobra.Command {
	f := runFlags{overrides: binaries.Overrides{}}
	var runs int
	cmd := &cobra.Command{
		Use:   "bench NAME",
		Short: "Repeat a scenario: how long it takes, and whether its verdicts differ from run to run",
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if runs < 1 {
				return usage("--runs %d: want at least 1", runs)
			}
			f.given = cmd.Flags().Changed
			return f.bench(cmd.Context(), args[0], runs, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().IntVar(&runs, "runs", 5, "how many times")
	return cmd
}

// sample is what one repetition came to.
type sample struct {
	wall, ready time.Duration
	operations  int
	verdicts    []reports.Invariant
}

func (f *runFlags) bench(ctx context.Context, name string, runs int, out, progress io.Writer) error {
	base := f.out
	if base == "" {
		base = filepath.Join("_out", fmt.Sprintf("bench-%s-%s-%s", name, f.subject, time.Now().Format("20060102-150405")))
	}
	var samples []sample
	for i := range runs {
		f.out = filepath.Join(base, fmt.Sprintf("%02d", i+1))
		began := time.Now()
		err := f.run(ctx, name, io.Discard, io.Discard)
		wall := time.Since(began)
		var exit *exitError
		if errors.As(err, &exit) && exit.code > exitInconclusive {
			return err
		}
		s, err := readSample(f.out, wall)
		if err != nil {
			return notRun(err)
		}
		samples = append(samples, s)
		fmt.Fprintf(progress, "run %d of %d: %.1f s, servers ready after %.1f s, %d requests\n", i+1, runs, wall.Seconds(), s.ready.Seconds(), s.operations)
	}
	return summarize(out, f.commandLine(name), samples)
}

func readSample(dir string, wall time.Duration) (sample, error) {
	report, err := reports.Read(filepath.Join(dir, reports.JSONFile))
	if err != nil {
		return sample{}, err
	}
	h, err := history.ReadFile(runDir(dir).history())
	if err != nil {
		return sample{}, err
	}
	s := sample{wall: wall, operations: report.Metadata.Operations, verdicts: report.Invariants}
	for _, l := range h.Lifecycle {
		if l.Incarnation == 1 && l.State == history.StateReady {
			s.ready = max(s.ready, l.At)
		}
	}
	return s, nil
}

func summarize(out io.Writer, command string, samples []sample) error {
	fmt.Fprintf(out, "%s, %d times\n%s\n\n", command, len(samples), strings.Join(environment(), ", "))
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
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	differing := 0
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
	_, err := fmt.Fprintf(out, "\n%d of %d verdicts differed from run to run\n", differing, len(samples[0].verdicts))
	return err
}
