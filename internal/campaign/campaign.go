// Package campaign searches for violations on real kube-apiservers. It chooses schedules from seeds
// as the simulator does, carries them out on clusters that are kept for many schedules, and judges
// each. It prefers schedules that reach new situations. If no finding explains a violation, it
// repeats the schedule on new clusters, shrinks it, and tries it in the simulator.
package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/sim/search"
)

// These are the defaults of [Options].
const (
	DefaultCandidates = 8
	DefaultRepeats    = 3
	DefaultShrinkRuns = 6
	// perCluster is how many schedules are carried out on one cluster.
	perCluster = 40
	// mostConfirmed is how many kinds of NEW violations are repeated and shrunk.
	mostConfirmed = 20
	// mostFailures is how many clusters in a row may break off before a schedule is done.
	mostFailures = 3
)

// Options say what a campaign searches, for how long, and how.
type Options struct {
	// Spec is what each schedule runs: subject, rate, etcd, binaries, number of servers.
	Spec run.Spec
	// Versions are at least two, in any order.
	Versions []string
	// Controllers lets kube-controller-manager of the oldest version run in every schedule in which
	// servers of two versions run.
	Controllers bool
	// First is the first seed. Seeds is how many schedules are carried out; 0: for the time For.
	First, Seeds uint64
	For          time.Duration
	// UntilNew ends the search after the first schedule with a NEW violation that decides the verdict.
	UntilNew bool
	// Candidates is among how many seeds each schedule is chosen.
	Candidates uint64
	// Repeats is how often a schedule with a NEW violation is repeated on a new cluster. ShrinkRuns
	// bounds the runs to shrink it; 0 shrinks nothing.
	Repeats, ShrinkRuns int
	// Findings explain violations. Judging is how the kept runs are judged.
	Findings findings.Catalogue
	Judging  run.Judging
	// Earlier is the campaign to be continued: the document in Out. nil begins a new campaign. Spec,
	// Versions and First must be those of Earlier.
	Earlier *reports.Campaign
	// Out is the directory of the campaign, which exists. The document is written there whenever a
	// cluster has ended, so that a campaign that is killed can be continued.
	Out string
	// Progress takes a line for people.
	Progress func(format string, args ...any)
	// Version, Machine and Environment describe skewproof, the machine and the other programs in
	// reports.
	Version, Machine string
	Environment      []string
}

// Cluster is a cluster that is kept for several schedules. [run.Session] is one.
type Cluster interface {
	CarryOut(ctx context.Context, p *run.Plan, dir run.Dir) (run.ScheduleResult, error)
	Close() error
	Discard() error
}

// Opener starts a cluster. Its logs are below out.
type Opener func(ctx context.Context, out string) (Cluster, error)

// Campaign is a search that is carried out once.
type Campaign struct {
	Options
	start    Opener
	chooser  *chooser
	reached  Coverage
	tally    *search.Tally
	explored time.Duration // without repeating and shrinking

	earlier      uint64 // schedules of earlier parts, which all counts include
	done         uint64
	real         reports.RealCampaign // its counts, clusters and gaps so far
	took, resets time.Duration        // of the schedules that were carried out
	alone        time.Duration        // of the schedules that were repeated alone
	growth       []reports.GrowthPoint
	known        map[int]uint64                 // schedules by finding
	seen         map[reports.ViolationKind]bool // NEW ones, those of earlier parts included
	fresh        []*newFinding                  // NEW ones of this part, and earlier ones that were not repeated, in this order
	opened       int                            // clusters so far, also those for repeating
	failures     int                            // clusters in a row that carried out no schedule
	// pending is a schedule that its cluster could not be used for. It is carried out on the next.
	pending *schedule
}

// newFinding is a kind of violation that no finding explains.
type newFinding struct {
	search.Violation
	schedule schedule
	real     reports.RealFinding
	file     string // the name of the repro file, once it has one
	shrunk   bool
	tried    bool // it was repeated, or cannot be
	earlier  bool // an earlier part saw it
}

// New checks the options. start is needed for [Campaign.Run] only.
func New(o Options, start Opener) (*Campaign, error) {
	o.Versions = slices.Compact(slices.SortedFunc(slices.Values(o.Versions), semver.Compare))
	if len(o.Versions) < 2 {
		return nil, errors.New("--versions: want at least two different versions, such as v1.36.3,v1.37.1")
	}
	if o.Spec.Servers < 1 {
		return nil, fmt.Errorf("--servers %d: a cluster of real servers is kept for many schedules, which all have as many servers; want 1 or more", o.Spec.Servers)
	}
	spec := search.Spec{Policy: o.Spec.Subject, From: o.Versions[0], To: o.Versions[len(o.Versions)-1], Servers: o.Spec.Servers, Resources: 6}
	if len(o.Versions) > 2 {
		spec.Versions = o.Versions
	}
	chooser, err := newChooser(spec, max(o.First, 1), o.Candidates, o.Controllers)
	if err != nil {
		return nil, err
	}
	c := &Campaign{Options: o, start: start, chooser: chooser, reached: Coverage{}, tally: search.NewTally(spec),
		known: map[int]uint64{}, seen: map[reports.ViolationKind]bool{}}
	if o.Earlier != nil {
		c.resume(o.Earlier)
	}
	probe, err := chooser.of(chooser.next)
	if err != nil {
		return nil, err
	}
	_, err = c.planOf(probe) // an error in the options concerns every schedule
	return c, err
}

// planOf is the run of a schedule.
func (c *Campaign) planOf(s schedule) (*run.Plan, error) {
	spec := c.Spec
	seed := s.seed
	spec.Backend, spec.From, spec.To, spec.Servers, spec.Seed = scenario.BackendLocal, c.chooser.from, c.chooser.to, len(s.plan.Servers), &seed
	spec.Own = &run.Own{
		Name: "campaign", Happens: fmt.Sprintf("A random schedule of a campaign on real servers (seed %d).", s.seed), Plan: s.plan,
		Command: c.command(s.seed),
	}
	return spec.Plan()
}

// command are the words that carry out one schedule alone.
func (c *Campaign) command(seed uint64) []string {
	words := []string{
		"explore", "--subject", c.Spec.Subject, "--versions", join(c.Versions), "--servers", fmt.Sprint(c.Spec.Servers),
		"--first", fmt.Sprint(seed), "--seeds", "1", "--candidates", "1",
	}
	if c.Controllers {
		words = append(words, "--controllers")
	}
	return words
}

// Run carries out the campaign until it has run all its schedules, its time is over, or ctx ends.
// An error says that not one cluster could be used.
func (c *Campaign) Run(ctx context.Context) (*reports.Campaign, error) {
	var failed error
	c.confirmAll(ctx) // what an earlier part did not repeat
	for c.wants(ctx) && failed == nil {
		failed = c.useCluster(ctx)
		c.confirmAll(ctx)
		if err := reports.WriteCampaign(c.Out, c.report(false)); err != nil {
			return nil, err
		}
	}
	if failed != nil && c.done == c.earlier && ctx.Err() == nil {
		return nil, failed
	}
	if failed != nil && ctx.Err() == nil {
		c.tally.Trouble(failed.Error(), c.chooser.next)
	}
	complete := failed == nil && (c.UntilNew && c.decided() || c.Seeds > 0 && c.done-c.earlier >= c.Seeds ||
		c.Seeds == 0 && c.explored >= c.For)
	return c.report(complete), nil
}

// wants reports whether the campaign must carry out more schedules.
func (c *Campaign) wants(ctx context.Context) bool {
	if ctx.Err() != nil || c.UntilNew && c.decided() {
		return false
	}
	if c.Seeds > 0 {
		return c.done-c.earlier < c.Seeds
	}
	return c.explored < c.For
}

// decided reports whether this part found a NEW violation of an invariant that decides the verdict.
func (c *Campaign) decided() bool {
	return slices.ContainsFunc(c.fresh, func(f *newFinding) bool {
		return !f.earlier && slices.ContainsFunc(invariant.All(), func(i invariant.Invariant) bool {
			return i.Name == f.Signature.Invariant && (i.Grade == invariant.GradeCore || c.Judging.Strict)
		})
	})
}

// open starts a cluster. name says what for.
func (c *Campaign) open(ctx context.Context, name string) (Cluster, error) {
	return c.start(ctx, filepath.Join(c.Out, c.unused(name)))
}

// useCluster carries out schedules on a new cluster until it cannot be used any longer. An error
// ends the campaign.
func (c *Campaign) useCluster(ctx context.Context) (err error) {
	began := time.Now()
	before := c.explored
	defer func() { c.explored = before + time.Since(began) }()
	cluster, err := c.open(ctx, "cluster")
	if err != nil {
		return err
	}
	note := reports.RealSession{Ended: "the campaign ended"}
	var seeds []uint64
	broken := false
	for c.wants(ctx) && note.Schedules < perCluster {
		c.explored = before + time.Since(began)
		s, err := c.nextSchedule()
		if err != nil {
			return errors.Join(err, cluster.Close())
		}
		result, err := c.carryOut(ctx, cluster, s, seeds)
		if err != nil && ctx.Err() != nil {
			break
		}
		if err != nil {
			note.Ended, broken = "it broke off: "+err.Error(), true
			c.tally.Trouble(note.Ended, s.seed)
			break
		}
		if len(result.Left) > 0 {
			note.Ended = fmt.Sprintf("it was not used for the schedule of seed %d: %s", s.seed, strings.Join(result.Left, "; "))
			c.Progress("%s", note.Ended)
			if note.Schedules == 0 { // nothing can be left of others on a new cluster
				c.tally.Trouble(note.Ended, s.seed)
			} else {
				c.pending = &s
			}
			break
		}
		seeds = append(seeds, s.seed)
		note.Schedules++
	}
	switch {
	case ctx.Err() != nil:
		note.Ended = "the campaign was interrupted"
	case note.Schedules == perCluster:
		note.Ended = "it had carried out as many schedules as a cluster may"
	}
	c.real.Sessions = append(c.real.Sessions, note)
	err = cluster.Close()
	if !broken && err == nil || ctx.Err() != nil {
		_ = cluster.Discard() // its logs are not needed
	}
	if c.failures++; note.Schedules > 0 {
		c.failures = 0
	}
	if c.failures >= mostFailures {
		return fmt.Errorf("%d clusters in a row carried out no schedule; the last: %s", c.failures, note.Ended)
	}
	return nil // the note of the cluster says that it did not end well
}

// nextSchedule returns the pending schedule, or chooses a new one.
func (c *Campaign) nextSchedule() (schedule, error) {
	if s := c.pending; s != nil {
		c.pending = nil
		return *s, nil
	}
	return c.chooser.choose(c.reached)
}

// carryOut carries out a schedule, judges it, and counts the result. before are the earlier
// schedules on the cluster.
func (c *Campaign) carryOut(ctx context.Context, on Cluster, s schedule, before []uint64) (run.ScheduleResult, error) {
	judged, result, err := c.judge(ctx, on, s, fmt.Sprintf("schedule-%d", s.seed))
	if err != nil || len(result.Left) > 0 {
		return result, err
	}
	keep := false
	for _, v := range judged.violations {
		if v.Finding != 0 {
			c.known[v.Finding]++
			continue
		}
		if !c.seen[v.ViolationKind] {
			c.seen[v.ViolationKind] = true
			shown := reports.RealFinding{Run: filepath.Base(string(judged.dir)), After: slices.Clone(before)}
			c.fresh = append(c.fresh, &newFinding{Violation: v, schedule: s, real: shown})
			keep = true
		}
	}
	c.count(s, judged, result)
	if !keep {
		return result, os.RemoveAll(string(judged.dir))
	}
	_, err = judged.dir.Judge(c.Judging, run.Console{Out: io.Discard, Progress: io.Discard})
	judged.dir.Tidy()
	return result, err
}
