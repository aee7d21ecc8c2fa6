package main

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/mod/semver"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim/search"
)

// searchFlags are the flags that all searches have.
type searchFlags struct {
	spec    search.Spec
	options search.Options
	out     string
	// given tells which flags the command line has.
	given func(name string) bool
}

// register declares them for the command of that name.
func (f *searchFlags) register(flags *pflag.FlagSet, command string) {
	f.given = flags.Changed
	flags.StringVar(&f.spec.From, "from", run.DefaultFrom, "the older version; what it serves must be recorded")
	flags.StringVar(&f.spec.To, "to", run.DefaultTo, "the newer version")
	flags.StringArrayVar(&f.spec.Changes, "change", nil, "set a switch of the policy, as SWITCH=VALUE (docs/policies.md lists them); may be repeated")
	flags.IntVar(&f.options.Workers, "workers", 0, "how many schedules are run at once (default: one for each processor)")
	flags.StringVar(&f.out, "out", "", "directory for what is found (default _out/"+command+"-POLICY-TIME)")
}

// registerPolicy declares the flags of searches of one policy.
func (f *searchFlags) registerPolicy(flags *pflag.FlagSet, command string, shard *string) {
	f.register(flags, command)
	flags.StringVar(&f.spec.Policy, "policy", "reference", "what the proxies of all servers do: a preset, or none for the feature switched off")
	flags.StringVar(shard, "shard", "", "search part I of N, as I/N; 'skewproof report merge' puts the parts together")
	flags.BoolVar(&f.options.Strict, "strict", false, "let invariants beyond the KEP count as well")
}

// check reports everything that can be known to be wrong before anything is run.
func (f *searchFlags) check(shard string) error {
	if semver.IsValid(f.spec.From) && semver.IsValid(f.spec.To) && semver.Compare(f.spec.To, f.spec.From) < 0 {
		return run.WrongOrder(f.spec.From, f.spec.To, f.given("from"), f.given("to"))
	}
	if _, err := f.spec.Setup(); err != nil {
		return &exitError{exitUsage, err}
	}
	if f.options.Workers < 0 || f.options.Workers > search.MaxWorkers {
		return usage("--workers %d: want 1 to %d, or 0 for one for each processor", f.options.Workers, search.MaxWorkers)
	}
	if shard == "" {
		return nil
	}
	first, second, ok := strings.Cut(shard, "/")
	i, err := strconv.Atoi(first)
	n, also := strconv.Atoi(second)
	if !ok || err != nil || also != nil || i < 1 || n < i || n > search.MaxShards {
		return usage("--shard %q: want I/N, such as 1/8, with I from 1 to N, and N up to %d", shard, search.MaxShards)
	}
	f.options.Shard, f.options.Shards = i, n
	return nil
}

// prepare makes the directory and what else a search needs of the process.
func (f *searchFlags) prepare(kind string, progress io.Writer) (dir string, err error) {
	if dir, err = newCampaignDir(f.out, kind+"-"+f.spec.Policy, time.Now()); err != nil {
		return "", err
	}
	f.options.Version, f.options.Machine = run.Version(), strings.Join(run.Machine(), ", ")
	f.options.Progress = func(p search.Progress) { fmt.Fprintln(progress, p) }
	utilruntime.ErrorHandlers = nil                // simulated apiservers cannot write all their answers: that is what faults are for
	debug.SetGCPercent(1600)                       // a run's garbage is large, and what lives on is small: collecting it all the time would take half of the time
	if debug.SetMemoryLimit(-1) == math.MaxInt64 { // the environment (GOMEMLIMIT) says nothing
		debug.SetMemoryLimit(searchMemory)
	}
	return dir, nil
}

// searchMemory is how much memory a search takes before garbage is collected more often.
const searchMemory = 1 << 30

// newCampaignDir creates out, or checks that it is empty. An empty name means one by what is searched and the time below _out.
func newCampaignDir(out, name string, now time.Time) (string, error) {
	if out == "" {
		out = filepath.Join("_out", fmt.Sprintf("%s-%s", name, now.Format("20060102-150405")))
	}
	_, err := run.FreshDir(out, "searches")
	return out, err
}

// finish writes a campaign and turns its verdict into an exit code.
func finish(dir string, c *search.Campaign, out io.Writer) error {
	err := tell(out, dir, reports.WriteCampaign(dir, c), func(shown reports.SummaryOptions) error {
		return reports.WriteCampaignSummary(out, c, shown)
	})
	if err != nil {
		return err
	}
	return outcomeError(c.Verdict.Outcome)
}

func newMerge() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "merge FILE...",
		Short: "Put the shards of a search together",
		Long: `Put the shards of a search together: the files campaign.json that 'skewproof explore --shard I/N' or 'skewproof exhaust --shard I/N' wrote, all
N of them, by the same skewproof with the same flags.`,
		Example: "  skewproof report merge shard-*/campaign.json --out _out/campaign",
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			var parts []*search.Campaign
			for _, file := range files {
				c, err := search.ReadCampaign(file)
				if err != nil {
					return notRun(err)
				}
				parts = append(parts, c)
			}
			merged, err := search.MergeCampaigns(parts)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			dir, err := newCampaignDir(out, "merged-"+merged.Spec.Policy, time.Now())
			if err != nil {
				return err
			}
			return finish(dir, merged, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "directory for the whole (default _out/merged-POLICY-TIME)")
	return cmd
}
