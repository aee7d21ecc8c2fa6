package main

import (
	"cmp"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/campaign"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
)

// realFlags are the flags of 'skewproof explore --backend local'.
type realFlags struct {
	campaign.Options
	earlier string // the directory of the campaign to be continued
}

// onlyLocal and onlySim are the flags of explore that mean nothing on the other backend, with the
// reason.
var (
	onlyLocal = map[string]string{
		"subject": "the simulator searches a --policy", "qps": "a schedule in the simulator has --requests and no load",
		"etcd": "the simulator starts no program", "binary": "the simulator starts no program", "label": "the simulator tests a policy",
		"candidates": "the simulator runs every seed", "repeats": "the simulator gives the same run again",
		"shrink-runs": "the simulator shrinks as long as it takes", "until-new": "a search in the simulator takes a minute",
		"controllers": "the simulator has none",
		"continue":    "give each part of a search in the simulator another --first",
	}
	onlySim = map[string]string{
		"policy": "real servers have a --subject", "change": "the policy of a real kube-apiserver cannot be changed",
		"from": "give --versions", "to": "give --versions",
		"workers": "one cluster is used at a time", "resources": "real servers serve all resources",
		"requests": "real servers are under a load, of --qps",
	}
)

func (f *realFlags) register(flags *pflag.FlagSet) {
	registerReal(flags, &f.Spec, backendLocal)
	flags.StringVar(&f.Spec.Subject, "subject", scenario.SubjectBuiltin, "whose proxy is tested (local only)")
	flags.Uint64Var(&f.Candidates, "candidates", campaign.DefaultCandidates,
		"choose each schedule from this many seeds, by the cells that were not reached yet (local only)")
	flags.IntVar(&f.Repeats, "repeats", campaign.DefaultRepeats,
		"how often a schedule with a NEW violation is repeated, on a new cluster each time (local only)")
	flags.IntVar(&f.ShrinkRuns, "shrink-runs", campaign.DefaultShrinkRuns,
		"how many runs may look for a smaller schedule of each NEW violation (local only)")
	flags.BoolVar(&f.UntilNew, "until-new", false,
		"end the search after the first schedule with a NEW violation that decides the verdict (local only)")
	flags.BoolVar(&f.Controllers, "controllers", false,
		"let kube-controller-manager run in schedules with servers of two versions, with objects that it must keep and delete (local only)")
	flags.StringVar(&f.earlier, "continue", "",
		"go on with the campaign in this directory: with its settings, its next seed and what it has reached (local only)")
}

// refuse refuses flags that mean nothing on a backend.
func refuseOn(backend string, given func(string) bool) error {
	refused := onlyLocal
	switch backend {
	case backendSim:
	case backendLocal:
		refused = onlySim
	default:
		return usage("--backend %q: want %s or %s", backend, backendSim, backendLocal)
	}
	for name, why := range refused { // in any order: one is as wrong as another
		if given(name) {
			return usage("--%s means nothing with --backend %s: %s", name, backend, why)
		}
	}
	return nil
}

// fixed are the flags whose values are those of the campaign that is continued.
var fixed = []string{"subject", "versions", "servers", "qps", "first", "strict", "out", "controllers"}

// resume reads the campaign to be continued and takes over its settings. It returns nil if none is.
func (r *realFlags) resume(f *searchFlags) (*reports.Campaign, error) {
	if r.earlier == "" {
		return nil, nil
	}
	for _, name := range fixed {
		if f.given(name) {
			return nil, usage("--%s with --continue: a campaign is continued with its own settings; leave --%s out", name, name)
		}
	}
	path := filepath.Join(r.earlier, reports.CampaignJSON)
	c, err := reports.ReadCampaign(path)
	if err != nil {
		return nil, usage("--continue %s: %w; give the directory that a campaign on real servers left", r.earlier, err)
	}
	if err := campaign.CheckEarlier(c, run.Version()); err != nil {
		return nil, usage("--continue %s: %s: %w", r.earlier, path, err)
	}
	r.Spec.Subject, r.Spec.QPS, r.Controllers = c.Real.Subject, c.Real.QPS, c.Real.Controllers
	f.spec.Servers, f.spec.Versions, f.options.First, f.options.Strict = c.Spec.Servers, c.Real.Versions, c.FirstSeed, c.Strict
	return c, nil
}

// run carries out a campaign on real servers. f has the flags that both backends share.
func (r *realFlags) run(ctx context.Context, f *searchFlags, out, progress io.Writer) error {
	if r.ShrinkRuns < 0 {
		return usage("--shrink-runs %d: want 0 or more", r.ShrinkRuns)
	}
	if r.Repeats < 0 {
		return usage("--repeats %d: want 0 or more", r.Repeats)
	}
	if r.Candidates < 1 || r.Candidates > 1000 {
		return usage("--candidates %d: want 1 to 1000", r.Candidates)
	}
	var err error
	if r.Earlier, err = r.resume(f); err != nil {
		return err
	}
	r.Judging = run.Judging{Strict: f.options.Strict, Known: f.known}
	if r.Findings, err = r.Judging.Findings(r.Spec.Subject); err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	r.Spec.QPS, r.Spec.Etcd = cmp.Or(r.Spec.QPS, run.DefaultQPS), cmp.Or(r.Spec.Etcd, binaries.DefaultEtcd)
	r.Spec.Servers = f.spec.Servers
	if r.Versions = f.spec.Versions; len(r.Versions) == 0 {
		r.Versions = []string{run.DefaultFrom, run.DefaultTo}
	}
	r.First, r.Seeds, r.For = f.options.First, f.options.Seeds, f.options.For
	r.Version, r.Machine, r.Progress = run.Version(), strings.Join(run.Machine(), ", "), run.Console{Progress: progress}.Status()
	if _, err := campaign.New(r.Options, nil); err != nil { // before anything is fetched
		return &exitError{code: exitUsage, err: err}
	}
	controllers := ""
	if r.Controllers {
		controllers = slices.MinFunc(r.Versions, semver.Compare)
	}
	sessions, err := r.Spec.Sessions(ctx, r.Versions, controllers, progress)
	if err != nil {
		return err
	}
	if r.Out = r.earlier; r.Earlier == nil {
		if r.Out, err = campaignDir(f.out, "explore-"+r.Spec.Subject); err != nil {
			return err
		}
	}
	r.Environment = sessions.Environment()
	c, err := campaign.New(r.Options, func(ctx context.Context, out string) (campaign.Cluster, error) { return sessions.Open(ctx, out) })
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	found, err := c.Run(ctx)
	if err != nil {
		return notRun(err)
	}
	found.Known = f.known != ""
	return finish(r.Out, found, out)
}
