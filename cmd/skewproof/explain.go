package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/scenarios"
)

func newFinding() *cobra.Command {
	var own, output string
	cmd := &cobra.Command{
		Use:   "finding [NUMBER…]",
		Short: "List the known defects of released kube-apiservers, or describe those that are named",
		Long: `List the findings: the known defects of released kube-apiservers, which runs name by their numbers. With numbers, describe these
findings: what clients see, who is affected and how to avoid it, what it means for an upgrade, the cause, and the command that shows it.`,
		Example: `  skewproof finding
  skewproof finding 2
  skewproof finding 2 -o yaml                # with the predicate that decides which violations it explains
  skewproof finding 1000 --known own.yaml    # a finding of your own`,
		RunE: func(cmd *cobra.Command, numbers []string) error {
			if output != "" && !isDocument(output) {
				return usage("--output %q: want json or yaml", output)
			}
			all, err := allFindings(own)
			if err != nil {
				return &exitError{code: exitUsage, err: err}
			}
			named, err := findingsNamed(all, numbers)
			switch {
			case err != nil:
				return err
			case output != "":
				return writeAs(cmd.OutOrStdout(), output, named)
			case len(numbers) == 0:
				return reports.WriteFindings(cmd.OutOrStdout(), named)
			}
			return each(cmd, named, reports.WriteFinding)
		},
		ValidArgsFunction: func(_ *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			all, _ := allFindings(own) // without a file that cannot be read
			var numbers []cobra.Completion
			for _, f := range all {
				if number := strconv.Itoa(f.Number); !slices.Contains(given, number) {
					numbers = append(numbers, cobra.CompletionWithDesc(number, reports.Printable(f.Title)))
				}
			}
			return numbers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		},
	}
	cmd.Flags().StringVar(&own, "known", "", "a file with findings of your own, which are shown too")
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml")
	return cmd
}

// allFindings are the findings of this repository, and those in a file of the user's own.
func allFindings(own string) (findings.Catalogue, error) {
	return run.Judging{Known: own}.Findings(scenario.SubjectBuiltin)
}

// findingsNamed returns the findings with these numbers, or all if there are none.
func findingsNamed(all findings.Catalogue, numbers []string) (findings.Catalogue, error) {
	if len(numbers) == 0 {
		return all, nil
	}
	var named findings.Catalogue
	for _, number := range numbers {
		at := slices.IndexFunc(all, func(f findings.Finding) bool { return strconv.Itoa(f.Number) == strings.TrimLeft(number, "0") })
		if at < 0 {
			var there []string
			for _, f := range all {
				there = append(there, strconv.Itoa(f.Number))
			}
			return nil, usage("no finding %q: there are %s; 'skewproof finding' lists them", number, strings.Join(there, ", "))
		}
		named = append(named, all[at])
	}
	return named, nil
}

func newExplain() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "explain [NAME…]",
		Short: "List the invariants by which runs are judged, or explain those that are named",
		Long: `List the invariants by which every run is judged. With names, explain these invariants: what must hold, which clause demands it,
whether it decides the verdict, when a verdict on it is inconclusive, which scenarios test it, and which findings violate it.`,
		Example: `  skewproof explain
  skewproof explain NoFalseNotFound
  skewproof explain NoFalseNotFound Converges -o yaml`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if output != "" && !isDocument(output) {
				return usage("--output %q: want json or yaml", output)
			}
			named, err := explained(names)
			switch {
			case err != nil:
				return err
			case output != "":
				return writeAs(cmd.OutOrStdout(), output, named)
			case len(names) == 0:
				return reports.WriteExplanations(cmd.OutOrStdout(), named)
			}
			return each(cmd, named, reports.WriteExplanation)
		},
		ValidArgsFunction: func(_ *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			for _, i := range invariant.All() {
				if !slices.Contains(given, i.Name) {
					names = append(names, cobra.CompletionWithDesc(i.Name, i.Sentence))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml")
	return cmd
}

// explained explains the invariants with these names, or all if there are none. Upper and lower
// case make no difference.
func explained(names []string) (all []reports.Explanation, err error) {
	catalogue := invariant.All()
	chosen := catalogue
	if len(names) > 0 {
		chosen = nil
	}
	for _, name := range names {
		at := slices.IndexFunc(catalogue, func(i invariant.Invariant) bool { return strings.EqualFold(i.Name, name) })
		if at < 0 {
			return nil, notAnInvariant(name)
		}
		chosen = append(chosen, catalogue[at])
	}
	for _, i := range chosen {
		var tested []string
		for _, s := range scenarios.All() {
			if slices.Contains(s.About, i.Name) {
				tested = append(tested, s.Name)
			}
		}
		all = append(all, reports.Explain(i, tested, findings.All()))
	}
	return all, nil
}

// notAnInvariant says what a name is instead, or which invariant has a similar name.
func notAnInvariant(name string) error {
	if _, err := scenarios.Find(name); err == nil {
		return usage("%s is a scenario, not an invariant: 'skewproof list %s' describes it", name, name)
	}
	if _, err := strconv.Atoi(name); err == nil {
		return usage("%s is not an invariant: 'skewproof finding %s' describes a finding", name, name)
	}
	var known []string
	for _, i := range invariant.All() {
		known = append(known, i.Name)
	}
	return usage("no invariant %q%s", name, fault.Suggest(name, known))
}

// each writes one after the other, with an empty line between two.
func each[T any, S ~[]T](cmd *cobra.Command, all S, write func(out io.Writer, one T) error) error {
	for n, one := range all {
		if n > 0 {
			fmt.Fprintln(cmd.OutOrStdout())
		}
		if err := write(cmd.OutOrStdout(), one); err != nil {
			return err
		}
	}
	return nil
}
