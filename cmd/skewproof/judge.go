package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
)

func newJudge() *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:   "judge DIR",
		Short: "Judge a saved run again, with no cluster, and write its reports anew",
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := openRunDir(args[0])
			if err != nil {
				return err
			}
			return judgeRun(dir, strict, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "let invariants beyond the KEP count as well")
	return cmd
}

// judgeRun reads the history of a run, judges it, writes the reports and prints the summary.
func judgeRun(dir runDir, strict bool, out io.Writer) error {
	h, err := history.ReadFile(dir.history())
	if err != nil {
		return notRun(err)
	}
	verdicts := invariant.Judge(h)
	report := reports.New(h, verdicts, reports.Options{Version: version(), Strict: strict})
	if err := writeReports(dir, report, out); err != nil {
		return err
	}
	return outcomeError(report.Verdict.Outcome)
}

func writeReports(dir runDir, report reports.RunReport, out io.Writer) error {
	return tell(out, string(dir), reports.WriteAll(string(dir), report), func(shown reports.SummaryOptions) error {
		return reports.WriteSummary(out, report, shown)
	})
}

func isTerminal(w io.Writer) bool {
	f, ok := unwrapped(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
