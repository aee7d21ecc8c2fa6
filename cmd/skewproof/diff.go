package main

import (
	"bytes"
	"io"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
)

// These are the formats of a comparison.
const (
	formatText     = "text"
	formatMarkdown = "markdown"
	formatHTML     = "html"
)

var formats = map[string]func(io.Writer, reports.Comparison) error{
	formatText: reports.WriteComparisonText, formatMarkdown: reports.WriteComparisonMarkdown,
	formatHTML: func(w io.Writer, c reports.Comparison) error { return reports.WriteComparisonHTML(w, c, run.Version()) },
}

func newDiff() *cobra.Command {
	var format, output string
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two runs, suites, matrices or searches: what is fixed, still there, or new",
		Long: `Compare two judged runs, two conformance suites, two matrices or two campaigns of 'skewproof explore': the directories that
they left, or the documents in them alone (report.json, conformance.yaml, matrix.json, campaign.json). Two directories of runs are compared
run by run.

Two violations are the same if their signatures without the circumstances are the same. A violation is new if only B has it, and fixed if
only A has it and B was tested for it. The output also shows verdicts, shares of answers, latencies and merged discovery. Latencies depend
on the other work of the machine, so they never decide the exit code.

Two runs must have the same scenario, subject and backend. Two campaigns must have run the same schedules. Anything else is refused.

Exit code 0: B has no kind of violation that A lacks; 1: B has one; 3: there is nothing to compare.`,
		Example: `  skewproof run rolling-upgrade --out _out/before
  skewproof run rolling-upgrade --binary kube-apiserver@v1.37.1=PATH --label my-patch --out _out/after
  skewproof diff _out/before _out/after -o markdown
  skewproof diff _out/before _out/after -o html --output diff.html`,
		Args: args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, paths []string) error {
			switch {
			case formats[format] == nil:
				return usage("--format %q: want text, markdown or html", format)
			case cmd.Flags().Changed("output") && output == "":
				return usage("--output is empty; leave it out for the standard output")
			}
			a, err := reports.Open(paths[0])
			if err != nil {
				return err
			}
			b, err := reports.Open(paths[1])
			if err != nil {
				return err
			}
			comparison, err := reports.CompareAll(a, b)
			if err != nil {
				return err
			}
			if err := writeComparison(cmd.OutOrStdout(), output, format, comparison); err != nil {
				return err
			}
			if comparison.Worse() {
				return &exitError{code: exitFail}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&format, "format", "o", formatText, "text, markdown (for a comment) or html (a page)")
	cmd.Flags().StringVar(&output, "output", "", "write to this file, which is replaced if it exists, instead of the standard output")
	return cmd
}

// writeComparison writes to a file, or to out if file is empty.
func writeComparison(out io.Writer, file, format string, c reports.Comparison) error {
	var b bytes.Buffer
	if err := formats[format](&b, c); err != nil {
		return err
	}
	if file != "" {
		return reports.Write(file, b.Bytes())
	}
	_, err := out.Write(b.Bytes())
	return err
}
