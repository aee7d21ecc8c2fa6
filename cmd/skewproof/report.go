package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/suite"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
)

// rendered are the documents from which reports are rendered, by file name, in the order in which
// the command looks for them.
var rendered = []document{
	readable(reports.CampaignJSON, reports.ReadCampaign, func(m *reports.Campaign, dir string, c run.Console) error { return finish(dir, m, c.Out) }),
	readable(reports.ConformanceFile, reports.ReadConformance, func(r reports.ConformanceReport, dir string, c run.Console) error {
		return judged(r.Standing(), r.Metadata.Known, suite.RenderConformance(r, dir, c, reports.SaveConformance(dir, r, nil)))
	}),
	readable(reports.MatrixJSON, reports.ReadMatrix, func(m reports.VersionMatrix, dir string, c run.Console) error {
		return judged(m.Standing(), m.Metadata.Known, suite.Render(m, dir, c))
	}),
	readable(reports.ClientsJSON, reports.ReadClients, func(t reports.ClientsTable, dir string, c run.Console) error {
		return resultError(t.Result, suite.Render(t, dir, c))
	}),
	readable(reports.AblationJSON, reports.ReadAblation, func(a *reports.Ablation, dir string, c run.Console) error {
		outcome := invariant.OutcomePass
		if !a.Complete {
			outcome = invariant.OutcomeInconclusive
		}
		return verdictError(outcome, suite.Render(a, dir, c))
	}),
	readable(reports.SmallestJSON, reports.ReadSmallest, func(s *reports.Smallest, dir string, c run.Console) error { return suite.Render(s, dir, c) }),
	readable(reports.JSONFile, reports.Read, func(r reports.RunReport, dir string, c run.Console) error {
		return judged(r.Standing(), r.Verdict.Known, run.Dir(dir).Render(r, c))
	}),
}

// document is a file from which reports are rendered again into its directory.
type document struct {
	file  string
	again func(dir string, c run.Console) error
}

func readable[T any](file string, read func(path string) (T, error), render func(document T, dir string, c run.Console) error) document {
	return document{file, func(dir string, c run.Console) error {
		read, err := read(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		return render(read, dir, c)
	}}
}

func newJudge() *cobra.Command {
	var j run.Judging
	var drafts, output string
	cmd := &cobra.Command{
		Use:   "judge DIR…",
		Short: "Judge saved runs again, without a cluster, and write their reports again",
		Long: `Judge a saved run again, without a cluster, and write its reports again. For a suite, judge all its runs except the control
runs. The reports of the suite itself stay as they are.

With --write-known, NEW violations become findings of your own, in a file for --known=FILE: a draft for each kind of violation, whose
predicate matches the violations of this run and no others. A comment in the draft names the fields that only a person can write.

The exit code is that of all runs together: a run that is INCONCLUSIVE makes all of them so.`,
		Example: `  skewproof judge _out/quiet --write-known own.yaml
  skewproof judge _out/quiet --known=own.yaml
  skewproof judge _out/quiet -o json`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, words []string) error {
			switch _, err := os.Lstat(drafts); { // checked before anything is judged
			case drafts != "" && err == nil:
				return usage("--write-known %s: it exists, and is not written over; choose another name, or remove it", drafts)
			case drafts == "" && cmd.Flags().Changed("write-known"):
				return usage("--write-known is empty: name the file to write")
			}
			if err := checkForm(output); err != nil {
				return err
			}
			var dirs []run.Dir
			for _, word := range words {
				some, err := run.OpenDirs(word)
				if err != nil {
					return err
				}
				dirs = append(dirs, some...)
			}
			return judgeAll(cmd, dirs, j, drafts, output)
		},
	}
	cmd.Flags().BoolVar(&j.Strict, "strict", false, "let invariants beyond the KEP count as well")
	cmd.Flags().StringVar(&drafts, "write-known", "", "write findings that explain the NEW violations to this file, which must not exist yet")
	suite.RegisterKnown(cmd.Flags(), &j.Known)
	registerForm(cmd.Flags(), &output)
	return cmd
}

// judgeAll judges runs, and drafts findings from their NEW violations. The exit code is that of all
// runs together.
func judgeAll(cmd *cobra.Command, dirs []run.Dir, j run.Judging, drafts, output string) error {
	limitMemory()
	var seen []findings.Seen
	var all invariant.Standing
	more, next := 0, 0
	for n, dir := range dirs {
		if len(dirs) > 1 && !isDocument(output) {
			fmt.Fprintf(cmd.OutOrStdout(), "\n%s\n", dir)
		}
		report, err := dir.Judge(j, consoleFor(cmd, output))
		if err != nil {
			return err
		}
		if err := writeDocument(cmd.OutOrStdout(), output, dir.File(reports.JSONFile), n > 0); err != nil {
			return err
		}
		some, cut := report.Unexplained()
		seen, more = append(seen, some...), more+cut
		known, err := j.Findings(report.Metadata.Subject)
		if err != nil {
			return err
		}
		next = max(next, known.Next())
		all = all.And(report.Standing())
	}
	if drafts != "" {
		if err := writeKnown(cmd, drafts, seen, more, next); err != nil {
			return err
		}
	}
	return judged(all, j.Known != "", nil)
}

// writeKnown drafts findings. more is the number of kinds for which no evidence was kept.
func writeKnown(cmd *cobra.Command, path string, seen []findings.Seen, more, first int) error {
	if len(seen) == 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "skewproof: nothing is NEW: %s is not written\n", path)
		return nil
	}
	if err := reports.WriteNew(path, findings.Draft(seen, first)); err != nil {
		return notRun(err)
	}
	drafted, err := findings.ReadFile(path)
	if err != nil {
		return notRun(fmt.Errorf("read what was written: %w", err))
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "skewproof: %d findings are drafted in %s; its comments name the fields to fill in\n", len(drafted), path)
	if more > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(),
			"skewproof: %d kinds more have no evidence in the reports, which show %d of each invariant: these stay NEW\n",
			more, invariant.MaxEvidence)
	}
	return nil
}

// newReports makes 'skewproof report'.
func newReports() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Render the reports of a run, a search, a suite, a table or an ablation again",
		Long: `Render reports again, from the document that programs read: report.json of a judged run, campaign.json of a search,
conformance.yaml of a conformance suite, matrix.json of a version matrix, clients.json of a table of clients, ablation.json or smallest.json
of an ablation. Nothing is run or judged; 'skewproof judge' does that to a saved history.

The exit code is that of the run or suite.`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, words []string) error {
			if err := checkForm(output); err != nil {
				return err
			}
			switch info, err := os.Stat(words[0]); {
			case err != nil:
				return fmt.Errorf("open report: %w", err)
			case !info.IsDir():
				return fmt.Errorf("open report: %s is a file; give the directory that it is in", words[0])
			}
			for _, r := range rendered {
				path := filepath.Join(words[0], r.file)
				switch _, err := os.Stat(path); {
				case err == nil:
					result := r.again(words[0], consoleFor(cmd, output))
					if err := verdictOnly(result); err != nil {
						return err
					}
					return errors.Join(writeDocument(cmd.OutOrStdout(), output, path, false), result)
				case !errors.Is(err, fs.ErrNotExist):
					return fmt.Errorf("open report: %w", err)
				}
			}
			if _, err := os.Stat(run.Dir(words[0]).History()); err == nil {
				return fmt.Errorf("%s holds a run that has no report yet: 'skewproof judge %s' makes one", words[0], words[0])
			}
			var names []string
			for _, r := range rendered {
				names = append(names, r.file)
			}
			return fmt.Errorf("%s holds no report: there is none of %s; give the directory that --out named", words[0], strings.Join(names, ", "))
		},
	}
	registerForm(cmd.Flags(), &output)
	return cmd
}
