package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/mod/semver"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/suite"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios"
	"github.com/skewproof/skewproof/sim/search"
)

// searchFlags are the flags that all searches have.
type searchFlags struct {
	spec    search.Spec
	options search.Options
	shard   string
	out     string
	known   string
	// given reports whether the command line has a flag.
	given func(name string) bool
}

// register declares these flags for the command of that name.
func (f *searchFlags) register(flags *pflag.FlagSet, command string) {
	f.given = flags.Changed
	flags.StringVar(&f.spec.From, "from", run.DefaultFrom, "the older version; what it serves must be recorded")
	flags.StringVar(&f.spec.To, "to", run.DefaultTo, "the newer version")
	flags.StringSliceVar(&f.spec.Versions, "versions", nil,
		fmt.Sprintf("all versions instead of --from and --to, with commas between them: 2 to %d", search.MaxVersions))
	flags.StringArrayVar(&f.spec.Changes, "change", nil,
		"set a switch of the policy, as SWITCH=VALUE (docs/policies.md lists them); may be repeated")
	flags.IntVar(&f.options.Workers, "workers", 0, "how many schedules are run at once (default: one for each processor)")
	flags.StringVar(&f.out, "out", "", "directory for the campaign (default _out/"+command+"-POLICY-TIME)")
}

// registerPolicy declares the flags of searches of one policy.
func (f *searchFlags) registerPolicy(flags *pflag.FlagSet, command string) {
	f.register(flags, command)
	flags.StringVar(&f.spec.Policy, "policy", "reference",
		"what the proxies of all servers do: a preset, or none for the feature switched off")
	flags.StringVar(&f.shard, "shard", "", "search part I of N, as I/N; 'skewproof report merge' puts the parts together")
	flags.BoolVar(&f.options.Strict, "strict", false, "let invariants beyond the KEP count as well")
	suite.RegisterKnown(flags, &f.known)
}

// registerRandom declares the flags of searches of random schedules.
func (f *searchFlags) registerRandom(flags *pflag.FlagSet) {
	flags.IntVar(&f.spec.Servers, "servers", 3,
		fmt.Sprintf("number of apiservers, 1 to %d; 0 for 1 to 5, as each schedule draws", search.MaxServers))
	flags.IntVar(&f.spec.Resources, "resources", 6, "how many resources are served, the most useful first; 0 for all, which is slower")
	flags.IntVar(&f.spec.Requests, "requests", search.DefaultRequests, "how many requests a schedule has")
	flags.Uint64Var(&f.options.First, "first", 1, "the first seed")
}

// complete fills in values that no flag sets, and refuses combinations of flags that are wrong.
func (f *searchFlags) complete(progress io.Writer) error {
	if all := f.spec.Versions; len(all) > 0 {
		if f.given("from") || f.given("to") {
			return usage("--versions %s: give it without --from and --to", strings.Join(all, ","))
		}
		slices.SortFunc(all, semver.Compare)
		f.spec.From, f.spec.To = all[0], all[len(all)-1]
	}
	if semver.IsValid(f.spec.From) && semver.IsValid(f.spec.To) && semver.Compare(f.spec.To, f.spec.From) < 0 {
		return run.WrongOrder(f.spec.From, f.spec.To, f.given("from"), f.given("to"))
	}
	if f.shard != "" {
		first, second, _ := strings.Cut(f.shard, "/")
		i, err := strconv.Atoi(first)
		n, also := strconv.Atoi(second)
		if err != nil || also != nil || i < 1 {
			return usage("--shard %q: want I/N, such as 1/8", f.shard)
		}
		f.options.Shard, f.options.Shards = i, n
	}
	var err error
	if f.options.Findings, err = (run.Judging{Known: f.known}).Findings(f.spec.Policy); err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	f.options.Version, f.options.Machine = run.Version(), strings.Join(run.Machine(), ", ")
	f.options.Progress = func(p search.Progress) { fmt.Fprintln(progress, p) }
	return nil
}

// prepare makes the directory, and sets up the process for a search.
func (f *searchFlags) prepare(kind string) (dir string, err error) {
	utilruntime.ErrorHandlers = nil // simulated apiservers cannot write all their answers, because faults break them
	debug.SetGCPercent(1600)        // a run makes much short-lived garbage; frequent collection would take half of the time
	limitMemory()
	return campaignDir(f.out, kind+"-"+f.spec.Policy)
}

// campaignDir creates the directory of a campaign, or checks that it is empty.
func campaignDir(out, name string) (string, error) {
	out = cmp.Or(out, run.DefaultOut(name))
	_, err := run.FreshDir(out, "searches")
	return out, err
}

// run carries out a search of one policy and writes its campaign.
func (f *searchFlags) run(ctx context.Context, kind string, out, progress io.Writer, prepared func() (*search.Search, error)) error {
	if err := f.complete(progress); err != nil {
		return err
	}
	s, err := prepared()
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	dir, err := f.prepare(kind)
	if err != nil {
		return err
	}
	c := s.Run(ctx)
	c.Known = f.known != ""
	return finish(dir, c, out)
}

// finish writes a campaign and turns its verdict into an exit code.
func finish(dir string, c *reports.Campaign, out io.Writer) error {
	return judged(c.Standing(), c.Known, tell(out, dir, reports.WriteCampaign(dir, c), func(shown reports.SummaryOptions) error {
		return reports.WriteCampaignSummary(out, c, shown)
	}))
}

func newExplore() *cobra.Command {
	var f searchFlags
	var real realFlags
	var backend string
	cmd := &cobra.Command{
		Use:   "explore",
		Short: "Search random schedules for one that violates an invariant: in the simulator, or on real kube-apiservers",
		Long: `Search random schedules of faults, restarts, upgrades and custom resources for one that violates an invariant.

In the simulator hundreds of schedules are run a second.

Each seed gives a schedule: the same one under every policy, on every machine. A violation does not stop the search. At the end one
violation of each kind is shrunk to a small schedule and written as a repro file, which 'skewproof replay' runs again. One schedule in a
hundred is run twice, and the two runs are compared. Ctrl-C ends the search, and the results so far are written.

On the backend local the same schedules are carried out on real kube-apiservers of --versions, one after the other on one cluster. Between
two schedules every server is restarted, and the state of the cluster is compared with its first state. A violation that no finding
explains is repeated on new clusters, shrunk by further runs, tried in the simulator, and written as a repro file with its run beside it.
With --continue DIR a campaign goes on where it ended or was killed, and the report covers all parts.

Without --seeds and --for a search takes a minute. In that time the search of the reference runs tens of thousands of schedules, and mostly
finds a rare violation of a core invariant (docs/simulator.md describes these).

Exit code 0: no schedule violates a core invariant (with --known: none in a way that is NEW); 1: a schedule does; 2: the search reached too
little to prove anything.`,
		Example: `  skewproof explore --seeds 1000                              # the reference, in seconds: it passes, exit code 0
  skewproof explore --policy upstream-1.37 --seeds 1000       # a model of a release: it fails, exit code 1
  skewproof explore                                           # the reference, for a minute
  skewproof explore --policy upstream-1.37 --change Knowledge.KeepLastGood=true --for 5m
  skewproof explore --seeds 1000000 --shard 3/8 --out shard-3
  skewproof explore --backend local --for 2h --known
  skewproof explore --backend local --versions v1.35.4,v1.36.3,v1.37.1 --subject reference --seeds 50
  skewproof explore --backend local --for 2h --continue _out/explore-builtin-20261125-120000`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := &f.options
			if err := refuseOn(backend, f.given); err != nil {
				return err
			}
			switch seeds, forTime := f.given("seeds"), f.given("for"); {
			case seeds && forTime:
				return usage("--seeds and --for: give how many schedules, or for how long, and not both")
			case seeds && o.Seeds < 1:
				return usage("--seeds %d: want at least 1", o.Seeds)
			case forTime && o.For <= 0:
				return usage("--for %s: want a time above 0", o.For)
			case seeds:
				o.For = 0
			}
			if backend == backendLocal {
				return real.run(cmd.Context(), &f, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return f.run(cmd.Context(), "explore", cmd.OutOrStdout(), cmd.ErrOrStderr(),
				func() (*search.Search, error) { return search.Explore(f.spec, *o) })
		},
	}
	flags := cmd.Flags()
	f.registerPolicy(flags, "explore")
	f.registerRandom(flags)
	real.register(flags)
	flags.StringVar(&backend, "backend", backendSim, "what the schedules are run on: sim or local")
	flags.Uint64Var(&f.options.Seeds, "seeds", 0, "how many schedules are run, over all shards; it takes the place of --for")
	flags.DurationVar(&f.options.For, "for", time.Minute, "how long the search runs, if --seeds is not given")
	return cmd
}

func newExhaust() *cobra.Command {
	var f searchFlags
	var events int
	cmd := &cobra.Command{
		Use:   "exhaust",
		Short: "Run every schedule of a few servers, resources and events in the simulator",
		Long: `Run every schedule of a few servers, resources and events in the simulator.

The events are: cutting the connections from one server to another or to etcd, and healing them; killing and starting a server; pausing and
resuming; restarting; replacing by the other version; defining and deleting a custom resource. Seven seconds pass after each event, and six
seconds after it every server is asked for every resource. At the end all faults are healed, and every server is asked again.`,
		Example: `  skewproof exhaust --servers 2 --resources 2 --events 4
  skewproof exhaust --policy upstream-1.37 --servers 3 --events 2`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), "exhaust", cmd.OutOrStdout(), cmd.ErrOrStderr(),
				func() (*search.Search, error) { return search.Exhaust(f.spec, events, f.options) })
		},
	}
	flags := cmd.Flags()
	f.registerPolicy(flags, "exhaust")
	flags.IntVar(&f.spec.Servers, "servers", 2, "number of apiservers, 2 or 3; the first is of the newer version")
	flags.IntVar(&f.spec.Resources, "resources", 2, "how many resources are served, 1 or 2")
	flags.IntVar(&events, "events", 3, fmt.Sprintf("the most events of a schedule, 1 to %d", search.MostEvents))
	return cmd
}

func newMerge() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "merge DIR…",
		Short: "Put the shards of a search together",
		Long: `Put the shards of a search together: the directories that 'skewproof explore --shard I/N' or 'skewproof exhaust
--shard I/N' wrote, all N of them, by the same skewproof with the same flags. Their files campaign.json alone will do.`,
		Example: "  skewproof report merge shard-* --out _out/campaign",
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			var parts []*reports.Campaign
			for _, file := range files {
				if info, err := os.Stat(file); err == nil && info.IsDir() {
					file = filepath.Join(file, reports.CampaignJSON)
				}
				c, err := search.ReadShard(file)
				if err != nil {
					return notRun(err)
				}
				parts = append(parts, c)
			}
			merged, err := search.MergeShards(parts)
			if err != nil {
				return &exitError{code: exitUsage, err: err}
			}
			dir, err := campaignDir(out, "merged-"+merged.Spec.Policy)
			if err != nil {
				return err
			}
			return finish(dir, merged, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "directory for the whole (default _out/merged-POLICY-TIME)")
	return cmd
}

func newAblate() *cobra.Command {
	var f searchFlags
	var to string
	var smallest, onlySchedules bool
	cmd := &cobra.Command{
		Use:   "ablate",
		Short: "Find out which single switch between two policies removes which violations",
		Long: `Find out which single switch between two policies removes which violations.

For each switch in which the two policies differ, the same random schedules are run twice: under the first policy with this one switch from
the second policy, and under the second policy with this one switch from the first. The table is printed, and written as text, Markdown,
JSON and a page (HTML).

With --smallest it looks for a small set of changes that removes every violation of a core invariant that all changes together remove, over
the schedules and over every scenario that the simulator runs. No change of the set can be left out.`,
		Example: `  skewproof ablate
  skewproof ablate --smallest
  skewproof ablate --from-policy upstream-1.36 --to-policy upstream-1.37 --seeds 500`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			progress := cmd.ErrOrStderr()
			if err := f.complete(progress); err != nil {
				return err
			}
			if smallest {
				all := scenarios.All()
				if onlySchedules {
					all = nil
				}
				return f.smallest(cmd.Context(), to, all, cmd.OutOrStdout(), progress)
			}
			if onlySchedules {
				return usage("--only-schedules means nothing without --smallest")
			}
			ablation, err := search.Ablate(f.spec, to, f.options)
			if err != nil {
				return &exitError{code: exitUsage, err: err}
			}
			dir, err := f.prepare("ablate")
			if err != nil {
				return err
			}
			a, err := ablation.Run(cmd.Context(), func(policy string, done, of int) { fmt.Fprintf(progress, "%d of %d: %s\n", done+1, of, policy) })
			if err != nil {
				return notRun(err)
			}
			if err := finishTables(dir, a, cmd.OutOrStdout()); err != nil {
				return err
			}
			if !a.Complete {
				return &exitError{code: exitInconclusive, err: errors.New("it was " + a.Ended())}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	f.register(flags, "ablate")
	flags.StringVar(&f.spec.Policy, "from-policy", "upstream-1.37", "the policy to begin with")
	flags.BoolVar(&smallest, "smallest", false, "look for a small set of changes that removes all core violations that changes can remove")
	flags.BoolVar(&onlySchedules, "only-schedules", false, "with --smallest: leave out the scenarios, which take most of the time")
	flags.StringVar(&to, "to-policy", "reference", "the policy to compare it with")
	f.registerRandom(flags)
	flags.Uint64Var(&f.options.Seeds, "seeds", search.DefaultAblationSeeds, "how many schedules are run under each policy")
	return cmd
}

// smallest looks for the smallest set of changes and writes it.
func (f *searchFlags) smallest(ctx context.Context, to string, all []scenario.Scenario, out, progress io.Writer) error {
	s, err := search.NewSmallest(f.spec, to, f.options, all)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	dir, err := f.prepare("smallest")
	if err != nil {
		return err
	}
	found, err := s.Run(ctx, func(what string) { fmt.Fprintln(progress, what) })
	if err != nil {
		return notRun(err)
	}
	return finishTables(dir, found, out)
}

// finishTables writes an ablation, or a smallest set of changes, and shows it.
func finishTables(dir string, d reports.Tables, out io.Writer) error {
	return suite.Render(d, dir, run.Console{Out: out, Color: isTerminal(out)})
}
