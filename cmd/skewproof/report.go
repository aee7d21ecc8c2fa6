package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/reports"
)

// rendered are the documents that reports are rendered from, by the names of their files, in the order in which they are looked for.
var rendered = []struct {
	file  string
	again func(dir string, out io.Writer) error
}{
	{reports.CampaignJSON, campaignAgain},
	{reports.ConformanceFile, conformanceAgain},
	{reports.MatrixJSON, matrixAgain},
	{reports.JSONFile, runAgain},
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
				return notRun(fmt.Errorf("open report: %w", err))
			case !info.IsDir():
				return notRun(fmt.Errorf("open report: %s is a file; give the directory that it is in", words[0]))
			}
			for _, r := range rendered {
				switch _, err := os.Stat(filepath.Join(words[0], r.file)); {
				case err == nil:
					return r.again(words[0], cmd.OutOrStdout())
				case !errors.Is(err, fs.ErrNotExist):
					return notRun(fmt.Errorf("open report: %w", err))
				}
			}
			if _, err := os.Stat(runDir(words[0]).history()); err == nil {
				return notRun(fmt.Errorf("%s holds a run that has no report yet: 'skewproof judge %s' makes one", words[0], words[0]))
			}
			return notRun(fmt.Errorf("%s holds no report: there is no %s, %s, %s or %s; give the directory that --out named", words[0],
				reports.JSONFile, reports.CampaignJSON, reports.ConformanceFile, reports.MatrixJSON))
		},
	}
	cmd.AddCommand(newMerge())
	return cmd
}

func runAgain(dir string, out io.Writer) error {
	report, err := reports.Read(runDir(dir).file(reports.JSONFile))
	if err != nil {
		return notRun(err)
	}
	if err := writeReports(runDir(dir), report, out); err != nil {
		return err
	}
	return outcomeError(report.Verdict.Outcome)
}

func campaignAgain(dir string, out io.Writer) error {
	c, err := reports.ReadCampaign(filepath.Join(dir, reports.CampaignJSON))
	if err != nil {
		return notRun(err)
	}
	return finish(dir, c, out)
}

func conformanceAgain(dir string, out io.Writer) error {
	c, err := reports.ReadConformance(filepath.Join(dir, reports.ConformanceFile))
	if err != nil {
		return notRun(err)
	}
	if err := reports.SaveConformance(dir, c, nil); err != nil {
		return notRun(err)
	}
	if err := reports.WriteConformanceSummary(out, c, reports.SummaryOptions{Dir: dir, Color: isTerminal(out)}); err != nil {
		return notRun(err)
	}
	return resultError(c.Result)
}

func matrixAgain(dir string, out io.Writer) error {
	m, err := reports.ReadMatrix(filepath.Join(dir, reports.MatrixJSON))
	if err != nil {
		return notRun(err)
	}
	if err := reports.SaveMatrix(dir, m); err != nil {
		return notRun(err)
	}
	return tellMatrix(m, dir, out)
}
