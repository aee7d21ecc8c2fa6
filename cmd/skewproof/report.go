package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/suite"
	"github.com/skewproof/skewproof/reports"
)

// rendered are the documents that reports are rendered from, by the names of their files, in the
// order in which they are looked for.
var rendered = []struct {
	file  string
	again func(dir string, c run.Console) error
}{
	{reports.CampaignJSON, campaignAgain},
	{reports.ConformanceFile, conformanceAgain},
	{reports.MatrixJSON, matrixAgain},
	{reports.JSONFile, runAgain},
}

func newJudge() *cobra.Command {
	var j run.Judging
	cmd := &cobra.Command{
		Use:   "judge DIR",
		Short: "Judge a saved run again, with no cluster, and write its reports anew",
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := run.OpenDir(args[0])
			if err != nil {
				return err
			}
			report, err := dir.Judge(j, console(cmd))
			if err != nil || j.Known != "" && report.OnlyKnown() {
				return err
			}
			return outcomeError(report.Verdict.Outcome)
		},
	}
	cmd.Flags().BoolVar(&j.Strict, "strict", false, "let invariants beyond the KEP count as well")
	suite.RegisterKnown(cmd.Flags(), &j.Known)
	return cmd
}

// newReports is 'skewproof report', with 'skewproof report merge'.
func newReports() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Render the reports of a run, a search, a conformance suite or a version matrix again",
		Long: `Render reports again, from the document that programs read: report.json of a judged run, campaign.json of a search, conformance.yaml of a
conformance suite, matrix.json of a version matrix. Nothing is run or judged; 'skewproof judge' does that to a saved history.

The exit code is that of what is rendered.`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, words []string) error {
			switch info, err := os.Stat(words[0]); {
			case err != nil:
				return fmt.Errorf("open report: %w", err)
			case !info.IsDir():
				return fmt.Errorf("open report: %s is a file; give the directory that it is in", words[0])
			}
			for _, r := range rendered {
				switch _, err := os.Stat(filepath.Join(words[0], r.file)); {
				case err == nil:
					return r.again(words[0], console(cmd))
				case !errors.Is(err, fs.ErrNotExist):
					return fmt.Errorf("open report: %w", err)
				}
			}
			if _, err := os.Stat(run.Dir(words[0]).History()); err == nil {
				return fmt.Errorf("%s holds a run that has no report yet: 'skewproof judge %s' makes one", words[0], words[0])
			}
			return fmt.Errorf("%s holds no report: there is no %s, %s, %s or %s; give the directory that --out named", words[0],
				reports.JSONFile, reports.CampaignJSON, reports.ConformanceFile, reports.MatrixJSON)
		},
	}
	cmd.AddCommand(newMerge())
	return cmd
}

func runAgain(dir string, c run.Console) error {
	report, err := reports.Read(filepath.Join(dir, reports.JSONFile))
	if err != nil {
		return err
	}
	return verdictError(report.Verdict.Outcome, run.Dir(dir).Render(report, c))
}

func campaignAgain(dir string, c run.Console) error {
	campaign, err := reports.ReadCampaign(filepath.Join(dir, reports.CampaignJSON))
	if err != nil {
		return err
	}
	return finish(dir, campaign, c.Out)
}

func conformanceAgain(dir string, c run.Console) error {
	report, err := reports.ReadConformance(filepath.Join(dir, reports.ConformanceFile))
	if err != nil {
		return err
	}
	return resultError(report.Result, suite.RenderConformance(report, dir, c, reports.SaveConformance(dir, report, nil)))
}

func matrixAgain(dir string, c run.Console) error {
	m, err := reports.ReadMatrix(filepath.Join(dir, reports.MatrixJSON))
	if err != nil {
		return err
	}
	return resultError(m.Result, suite.RenderMatrix(m, dir, c))
}

func newDiff() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two judged runs, or two suites scenario by scenario: what is fixed, still there, or new",
		Long: `Compare two judged runs, or all runs of two suites that are of the same scenario and subject. A violation is known again by its signature,
whatever the circumstances: it is new if only B has it, fixed if only A has it and B was tested for it.

Exit code 0: B has no kind of violation that A has not; 1: it has; 3: there is nothing to compare.`,
		Example: `  skewproof run rolling-upgrade --out _out/before
  skewproof run rolling-upgrade --binary kube-apiserver@v1.37.1=PATH --out _out/after
  skewproof diff _out/before _out/after -o markdown`,
		Args: args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			if output != "text" && output != "markdown" {
				return &exitError{exitUsage, fmt.Errorf("--output %q: want text or markdown", output)}
			}
			a, err := reports.FindRuns(dirs[0])
			if err != nil {
				return err
			}
			b, err := reports.FindRuns(dirs[1])
			if err != nil {
				return err
			}
			diffs, unpaired := reports.CompareAll(a, b)
			if err := reports.WriteDiffs(cmd.OutOrStdout(), diffs, unpaired, output == "markdown"); err != nil {
				return err
			}
			switch {
			case len(diffs) == 0:
				return fmt.Errorf("no scenario and subject is in both %s and %s", dirs[0], dirs[1])
			case slices.ContainsFunc(diffs, reports.Diff.Worse):
				return &exitError{code: exitFail}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, or markdown for a comment")
	return cmd
}
