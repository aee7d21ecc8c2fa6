package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/suite"
)

// These commands carry out many runs. Each fills in a suite, and turns its result into an exit
// code.

func newConformance() *cobra.Command {
	var s suite.Conformance
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Run the conformance suite: many scenarios, each with its negative control, and one report",
		Long: `Run the conformance suite on one Mixed Version Proxy and one pair of versions: the scenarios that --labels chooses (all,
unless it is given), and each once more on something on which it must fail. It leaves conformance.yaml, junit.xml and the directory of
every run.

Runs are carried out one after the other, or N at a time with --parallel N, where the machine has a processor and 2 GB of memory for each.

If a control run does not fail as it must, the harness is blind, and the result is inconclusive. An inconclusive scenario never counts as
passed.

Labels are those of 'skewproof list -o json', families and names, in Ginkgo's language: 'smoke', 'upgrades || network', 'conformance &&
!slow'.`,
		Example: `  skewproof conformance --labels smoke
  skewproof conformance --subject reference --from v1.35.4 --to v1.36.3 --parallel 2
  skewproof conformance --backend sim --subject reference            # minutes
  skewproof conformance --backend existing --kubeconfig FILE --product 'Example Proxy' --product-version v2.1`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.Version, s.Environment = run.Version(), run.Machine()
			if err := begin(cmd, &s.Options, s.Spec); err != nil {
				return err
			}
			if dryRun {
				return s.DryRun(cmd.OutOrStdout())
			}
			report, err := s.Run(cmd.Context())
			return judged(report.Standing(), report.Metadata.Known, err)
		},
	}
	s.Register(cmd.Flags())
	registerQPS(cmd.Flags(), &s.Spec, "")
	cmd.Flags().Var(seedFlag{&s.Spec.Seed}, "seed", "seed of the random choices of the load in every run; in sim, of all random choices")
	show(cmd.Flags(), "seed", strconv.Itoa(run.DefaultSeed))
	registerOwn(cmd.Flags(), &s.Spec, "local and kind only")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the command line of each run, and start nothing")
	cmd.Flags().StringVar(&s.Labels, "labels", "", "which scenarios, by labels")
	registerParallel(cmd.Flags(), &s.Parallel)
	return cmd
}

func newMatrix() *cobra.Command {
	var s suite.Matrix
	cmd := &cobra.Command{
		Use:   "matrix",
		Short: "Run scenarios over several pairs of versions and all subjects, and show all verdicts in one table",
		Long: `Run scenarios over several pairs of versions and all subjects, and show all verdicts in one table: as text, Markdown, JSON and
HTML. A server that crashes, hangs or cannot start in some pair is a result: its run's directory has the evidence. Runs are carried out one
after the other, or N at a time with --parallel N, where the machine has a processor and 2 GB of memory for each.

The pair v1.30.14+without.batch.v1..v1.30.14 tests the design of 1.28 on real servers. All of them have one release, and some have an API
switched off.

A run that proved nothing makes the matrix INCONCLUSIVE, and so does a negative control (subject none) that did not fail, was left out, or
was the only subject.`,
		Example: `  skewproof matrix --backend sim
  skewproof matrix --scenarios rolling-upgrade --pairs v1.35.4..v1.36.3,v1.36.3..v1.37.1 --subjects reference,none`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := begin(cmd, &s.Options, s.Spec); err != nil {
				return err
			}
			matrix, err := s.Run(cmd.Context())
			return judged(matrix.Standing(), matrix.Metadata.Known, err)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.Spec.Backend, "backend", backendLocal, "what the servers run on, as in 'skewproof run'")
	flags.StringSliceVar(&s.Scenarios, "scenarios", suite.MatrixScenarios, "scenarios, separated by commas")
	flags.StringSliceVar(&s.Subjects, "subjects", scenario.Subjects, "subjects, separated by commas")
	flags.StringSliceVar(&s.Pairs, "pairs", suite.MatrixPairs(), "pairs of versions as FROM..TO, separated by commas")
	show(flags, "pairs", strings.Join(suite.MatrixPairs(), ", "))
	suite.RegisterKnown(flags, &s.Spec.Known)
	suite.RegisterBinaries(flags, &s.Spec, "")
	registerOwn(flags, &s.Spec, "local and kind only")
	registerQPS(flags, &s.Spec, "")
	registerParallel(flags, &s.Parallel)
	flags.StringVar(&s.Out, "out", "", "directory for the tables and all runs (default _out/matrix-BACKEND-TIME)")
	return cmd
}

func newBench() *cobra.Command {
	var s suite.Bench
	cmd := &cobra.Command{
		Use:   "bench [NAME…]",
		Short: "Repeat scenarios: how long they take, and whether their verdicts differ from run to run",
		Long: `Repeat scenarios, and show how long they take and the verdict on each invariant, run by run. All scenarios run once before
any runs a second time. Every run is a process of its own and leaves its own report.

Exit code 0: all runs of each scenario had the same verdicts, whatever these are; 2: a verdict differed, or nothing ran twice, so that
nothing could be compared; 3: a run could not be carried out, or Ctrl-C: the finished runs are shown.`,
		Example: `  skewproof bench rolling-upgrade --runs 10
  skewproof bench --labels smoke --subject reference --runs 10 --parallel 2`,
		RunE: func(cmd *cobra.Command, names []string) error {
			s.Names = names
			if err := begin(cmd, &s.Options, s.Spec); err != nil {
				return err
			}
			s.Out, s.Spec.Out = s.Spec.Out, ""
			return verdictError(s.Run(cmd.Context()))
		},
	}
	flags := cmd.Flags()
	registerRun(flags, &s.Spec)
	flags.Lookup("out").Usage = "directory for all runs (default _out/bench-BACKEND-SUBJECT-TIME)"
	flags.StringVar(&s.Labels, "labels", "", "which scenarios, by labels, as in 'skewproof conformance'")
	flags.IntVar(&s.Runs, "runs", 5, "how many times")
	registerParallel(flags, &s.Parallel)
	return cmd
}

func newClients() *cobra.Command {
	var s suite.Clients
	cmd := &cobra.Command{
		Use:   "clients",
		Short: "Show what kubectl and client libraries can do through an older server, with each subject",
		Long: `Show what clients of several versions can do through an older server of a control plane of two versions: without a proxy,
with the builtin proxy, and with the reference. A run at the newer server itself shows what a client can do at all. Clients are kubectl
(get, explain, apply, edit, patch, delete, wait, diff, rollout and more), a program that uses client-go (discovery, the dynamic and the
typed client, informers), one that uses controller-runtime (a manager with a cache and a controller), and one that uses the JavaScript
client (KubernetesObjectApi, informers). These programs are built from the Go modules, once: 3 minutes for each version. The program in
JavaScript needs Node.js and npm, and is left out without them. An operation worked if the client's exit code and output are right, and if
the newer server has the right object afterwards.

Exit code 0: through the reference every operation works that works at the newer server itself, and without a proxy every operation on
kinds that only the newer server has fails, as it must; 1: through the reference an operation does not work; 2: nothing was proved, because
an operation was not run or the control did not fail.`,
		Example: `  skewproof clients
  skewproof clients --clients kubectl@v1.34.4,client-go@v0.37.1
  skewproof clients --clients kubectl@v1.37.1 --focus '^get' --binary kubectl@v1.37.1=./kubectl
  skewproof clients --page docs/clients.md`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := begin(cmd, &s.Options, s.Spec); err != nil {
				return err
			}
			s.Out, s.Spec.Out = s.Spec.Out, ""
			table, err := s.Run(cmd.Context())
			return resultError(table.Result, err)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.Spec.From, "from", "", "the version of the servers that clients ask")
	show(flags, "from", run.DefaultFrom)
	flags.StringVar(&s.Spec.To, "to", "", "the version of the newer server")
	show(flags, "to", run.DefaultTo)
	flags.StringSliceVar(&s.Clients, "clients", suite.DefaultClients(), "clients as COMPONENT@VERSION, separated by commas")
	show(flags, "clients", strings.Join(suite.DefaultClients(), ", "))
	flags.StringVar(&s.Focus, "focus", "", "a regular expression that chooses among the operations by name")
	suite.RegisterBinaries(flags, &s.Spec, "")
	flags.StringVar(&s.Page, "page", "", "write the table to this file too, as a page of the documentation")
	flags.StringVar(&s.Spec.Out, "out", "", "directory for the tables and all runs (default _out/clients-TIME)")
	return cmd
}

// begin checks the flags of a suite, and sets where it shows its results and how it is repeated.
func begin(cmd *cobra.Command, o *suite.Options, s run.Spec) error {
	o.Console, o.Reproduce = console(cmd), cmd.CommandPath()+givenWords(cmd.Flags())
	return checkGiven(cmd.Flags(), s)
}
