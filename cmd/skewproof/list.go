package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/suite"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios"
)

// listings are the forms of a list, by the names that --output takes.
var listings = map[string]func(io.Writer, []suite.Listed) error{
	"":     listShort,
	"wide": listWide,
	"name": func(out io.Writer, all []suite.Listed) error {
		for _, s := range all {
			fmt.Fprintln(out, s.Name)
		}
		return nil
	},
	"json": func(out io.Writer, all []suite.Listed) error { return writeAs(out, "json", all) },
	"yaml": func(out io.Writer, all []suite.Listed) error { return writeAs(out, "yaml", all) },
}

func newList() *cobra.Command {
	var labels, output string
	cmd := &cobra.Command{
		Use:   "list [NAME…]",
		Short: "List the scenarios in their families, or describe those that are named",
		Long: `List the scenarios in their families: how many minutes a run on real processes takes, and the labels. Scenarios that do not run on
processes have no minutes. On a terminal with too few rows, the list has several columns, and letters for the labels.

With names, or -o wide, each scenario is described: what happens, what must hold, which invariants it is about, and on what it must fail.

--labels chooses scenarios. Families are labels too.`,
		Example: `  skewproof list
  skewproof list rolling-upgrade
  skewproof list --labels network
  skewproof list --labels 'controllers && !slow'
  skewproof list -o json`,
		RunE: func(cmd *cobra.Command, names []string) error {
			form, ok := listings[output]
			if !ok {
				return usage("--output %q: want wide, name, json or yaml", output)
			}
			for _, name := range names {
				if _, err := scenarios.Find(name); err != nil {
					return &exitError{code: exitUsage, err: err}
				}
			}
			all, err := suite.List(labels)
			if err != nil {
				return err
			}
			if len(names) > 0 {
				all = slices.DeleteFunc(all, func(s suite.Listed) bool { return !slices.Contains(names, s.Name) })
			}
			if output == "" {
				columns, rows, terminal := terminalSize(cmd.OutOrStdout())
				switch {
				case len(names) > 0:
					form = listWide
				case terminal && rows < len(all)+listMargin:
					form = func(out io.Writer, all []suite.Listed) error { return listColumns(out, all, columns) }
				}
			}
			return form(cmd.OutOrStdout(), all)
		},
		ValidArgsFunction: completeScenarios,
	}
	cmd.Flags().StringVar(&labels, "labels", "", "only those that these labels choose, in Ginkgo's language: 'smoke', 'network && !slow'")
	cmd.Flags().StringVarP(&output, "output", "o", "", "wide, name, json or yaml")
	return cmd
}

// listMargin is how many rows of a terminal the short list needs beside its scenarios: the
// families, the last line, and the prompt.
const listMargin = 12

func listShort(out io.Writer, all []suite.Listed) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var family scenario.Family
	for _, s := range all {
		if s.Family != family {
			family = s.Family
			fmt.Fprintf(table, "%s\tminutes\tlabels\n", strings.ToUpper(string(family)))
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\n", s.Name, minutesOf(s), strings.Join(s.Labels, ", "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%d scenarios. 'skewproof list NAME' describes one, 'skewproof run NAME' runs it.\n", len(all))
	return err
}

func listWide(out io.Writer, all []suite.Listed) error {
	for i, s := range all {
		if i > 0 {
			fmt.Fprintln(out)
		}
		control := "the planted defect " + s.Control.Defect + " in the simulator, which violates " + strings.Join(s.Control.Invariants, ", ")
		if s.Control.Subject != "" {
			control = "subject " + s.Control.Subject + ", which violates " + strings.Join(s.Control.Invariants, ", ")
		}
		for _, line := range []struct{ what, text string }{
			{s.Name, ""}, {"  Happens:   ", s.Happens}, {"  Must hold: ", s.Holds}, {"  About:     ", strings.Join(s.About, ", ")},
			{"  Must fail: ", control}, {"  Labels:    ", strings.Join(s.Choosable, ", ")}, {"  Limits:    ", s.Limits.Reason},
		} {
			if line.text == "" && line.what != s.Name {
				continue
			}
			if _, err := io.WriteString(out, reports.Wrapped(line.what, line.text, reports.Columns(out))); err != nil {
				return err
			}
		}
	}
	return nil
}
