package run

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/kind"
	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/scenarios"
	"github.com/skewproof/skewproof/sim"
)

// Plan is a Spec with its defaults filled in. Everything is checked that can be checked before
// anything is fetched or started. Make a Plan with [Spec.Plan].
type Plan struct {
	Spec     Spec
	Scenario scenario.Scenario
	// Schedule is the scenario's plan for these servers and versions.
	Schedule scenario.Plan
	backend  backend
	// notes say what is not known about the user's own flags.
	notes []string
}

// backend is what the servers of a run run on. Each Plan has its own value, because a backend may
// store what it learns.
type backend interface {
	// check refuses plans that this backend cannot carry out.
	check(*Plan) error
	// describe adds to the history's Run how each server is started.
	describe(*Plan, *history.Run)
	// dryRun prints what the backend would start.
	dryRun(p *Plan, out io.Writer) error
	// prepare finds out within seconds whether the machine or the servers can carry out the run.
	// There is no directory yet.
	prepare(context.Context, *Plan) error
	// carryOut makes the cluster, carries out the plan, and ends the cluster. It calls judge when
	// the history is complete. cut says why the plan was not carried out completely, or is nil. The
	// error says why there is nothing to judge.
	carryOut(ctx context.Context, j *job, judge func(cut error)) error
}

// backends are all backends, with their subjects and their largest number of servers.
var backends = map[string]struct {
	make     func() backend
	subjects []string
	servers  int
}{
	scenario.BackendLocal:    {func() backend { return localBackend{} }, scenario.Subjects, local.MaxServers},
	scenario.BackendKind:     {func() backend { return &kindBackend{} }, scenario.Subjects, kind.MaxServers},
	scenario.BackendSim:      {func() backend { return simBackend{} }, SimulatedSubjects, MaxSimulated},
	scenario.BackendExisting: {func() backend { return &existingBackend{} }, existingSubjects, math.MaxInt},
}

// Plan checks everything that can be checked before anything is fetched or started. It reads at
// most a kubeconfig. An error about the Spec is of the kind [KindUsage].
func (s Spec) Plan() (*Plan, error) {
	p, err := s.plan()
	return p, wrong(err)
}

func (s Spec) plan() (*Plan, error) {
	p := &Plan{Spec: s}
	var err error
	if s.Own != nil {
		p.Scenario = scenario.Scenario{Name: s.Own.Name, Happens: s.Own.Happens, About: s.Own.About}
	} else if p.Scenario, err = scenarios.Find(s.Scenario); err != nil {
		return nil, err
	}
	p.Spec.Backend = cmp.Or(s.Backend, scenario.BackendLocal)
	b, ok := backends[p.Spec.Backend]
	if !ok {
		return nil, fmt.Errorf("--backend %q: want local, kind, sim or existing", s.Backend)
	}
	for _, f := range s.flags() {
		if err := s.Refuses(f.name); err != nil {
			return nil, err
		}
	}
	if _, err := (Judging{Known: s.Known}).Findings(s.Subject); err != nil {
		return nil, err
	}
	p.backend = b.make()
	if e, ok := p.backend.(*existingBackend); ok { // the kubeconfig says how many servers there are
		if err := e.read(p); err != nil {
			return nil, err
		}
	}
	p.fillIn()
	if err := p.checkSpec(s, b.subjects, b.servers); err != nil {
		return nil, err
	}
	if err := p.schedule(); err != nil {
		return nil, err
	}
	if err := p.checkHeld(); err != nil {
		return nil, err
	}
	if err := p.backend.check(p); err != nil {
		return nil, err
	}
	if p.Spec.Subject == scenario.SubjectBuiltin && s.Own == nil {
		return p, local.CheckDesigns(p.Spec.From, p.Spec.To)
	}
	return p, nil
}

// fillIn fills in the defaults. Those of the backend existing are already filled in.
func (p *Plan) fillIn() {
	s := &p.Spec
	s.Subject = cmp.Or(s.Subject, scenario.SubjectBuiltin)
	s.From, s.To = cmp.Or(s.From, DefaultFrom), cmp.Or(s.To, DefaultTo)
	s.Servers = cmp.Or(s.Servers, max(DefaultServers, p.Scenario.MinServers))
	s.QPS = cmp.Or(s.QPS, DefaultQPS)
	if s.Seed == nil {
		s.Seed = new(uint64(DefaultSeed))
	}
	if s.Backend == scenario.BackendLocal {
		s.Etcd = cmp.Or(s.Etcd, binaries.DefaultEtcd)
	}
}

// checkEtcd checks that etcd of a version can be started by a run.
func checkEtcd(version string) error {
	if _, err := binaries.ParseVersion(binaries.Etcd, version); err != nil {
		return fmt.Errorf("--etcd: %w", err)
	}
	if semver.Compare(version, binaries.OldestEtcd) < 0 {
		return fmt.Errorf("--etcd %s: a run starts etcd with flags that %s introduced; choose that or a later one", version, binaries.OldestEtcd)
	}
	return nil
}

// checkSpec checks each field of the Spec. given is the Spec without its defaults.
func (p *Plan) checkSpec(given Spec, subjects []string, servers int) error {
	s, chosen := p.Spec, p.Scenario
	for _, v := range []struct{ flag, version string }{{"--from", s.From}, {"--to", s.To}} {
		if err := checkVersion(v.version); err != nil {
			return fmt.Errorf("%s: %w", v.flag, err)
		}
	}
	if s.Etcd != "" {
		if err := checkEtcd(s.Etcd); err != nil {
			return err
		}
	}
	switch {
	case !slices.Contains(subjects, s.Subject):
		return fmt.Errorf("--subject %q: the backend %s has %s", s.Subject, s.Backend, strings.Join(subjects, ", "))
	case !chosen.Limits.Allows(s.Backend):
		return fmt.Errorf("--backend %s: %s %s", s.Backend, chosen.Name, chosen.Limits.OnBackends())
	case !chosen.Limits.AllowsSubject(s.Subject):
		return fmt.Errorf("--subject %s: %s %s", s.Subject, chosen.Name, chosen.Limits.ForSubjects())
	case semver.Compare(s.To, s.From) < 0:
		return WrongOrder(s.From, s.To, given.From != "", given.To != "")
	case chosen.NeedsTwoVersions && s.From == s.To:
		return fmt.Errorf("--from and --to are both %s: %s is about resources that only some servers serve, and needs two versions", s.From,
			chosen.Name)
	case s.Servers < chosen.MinServers || s.Servers > servers:
		return fmt.Errorf("--servers %d: %s needs %d to %d on the backend %s", s.Servers, chosen.Name, chosen.MinServers, servers, s.Backend)
	}
	if s.Soak < 0 {
		return Usagef("--soak %s: want how much longer the load runs, such as 30m", s.Soak)
	}
	if err := checkLabel(s.Label); err != nil {
		return err
	}
	return CheckQPS(s.QPS)
}

// maxLabel is the longest label, in bytes, because a label is shown in one line.
const maxLabel = 200

// checkLabel refuses a label that is not one line of text.
func checkLabel(label string) error {
	switch {
	case len(label) > maxLabel:
		return Usagef("--label has %d bytes: want a short name for the tested build, of at most %d", len(label), maxLabel)
	case !utf8.ValidString(label) || strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsPrint(r) }):
		return Usagef("--label %q: want one line of text, without control characters", label)
	}
	return nil
}

// CheckQPS refuses a rate that the load cannot have.
func CheckQPS(qps float64) error {
	if !(qps >= sim.MinQPS && qps <= sim.MaxQPS) { // NaN is refused too
		return Usagef("--qps %v: want a rate of %v to %v", qps, sim.MinQPS, sim.MaxQPS)
	}
	return nil
}

// WrongOrder says that to is older than from. The command line may have given only one of the two.
func WrongOrder(from, to string, fromGiven, toGiven bool) error {
	switch {
	case !toGiven:
		return Usagef("--from %s is newer than the default --to %s: give --to as well", from, to)
	case !fromGiven:
		return Usagef("--to %s is older than the default --from %s: give --from as well", to, from)
	}
	return Usagef("--to %s is older than --from %s: give the older version as --from", to, from)
}

// schedule makes the scenario's plan.
func (p *Plan) schedule() error {
	s := p.Spec
	if s.Own != nil {
		p.Schedule = s.Own.Plan
	} else {
		p.Schedule = p.Scenario.Plan(scenario.Parameters{
			Servers: s.Servers, From: s.From, To: s.To, Bounds: history.DefaultBounds,
			ReadOnly: s.OnlyReads || s.Backend == scenario.BackendExisting,
		})
		p.Schedule.Lengthen(s.Soak)
	}
	if err := p.Schedule.Validate(); err != nil {
		return fmt.Errorf("scenario %s: %w", p.Scenario.Name, err)
	}
	if s.OnlyReads {
		if err := p.Schedule.OnlyReads(); err != nil {
			return fmt.Errorf("--only-reads: %s does more: %w", p.Scenario.Name, err)
		}
	}
	return nil
}

// describe returns the history's record of the run before the run begins.
func (p *Plan) describe() history.Run {
	s := p.Spec
	run := history.Run{
		Scenario: p.Scenario.Name, Sentence: p.Scenario.Happens, Backend: s.Backend, Subject: s.Subject, From: s.From, To: s.To,
		Seed: *s.Seed, QPS: s.QPS, About: slices.Clone(p.Scenario.About), Pressure: p.Schedule.Pressure, Bounds: p.Schedule.Bounds,
		Reproduce: s.Command(), Label: s.Label, Unjudged: p.unjudged(),
	}
	if own := s.own(); len(own.Words()) > 0 {
		run.Own = &own
	}
	if p.Scenario.Control.Subject == s.Subject {
		run.Control = slices.Clone(p.Scenario.Control.Invariants)
	}
	run.Servers = p.servers()
	p.backend.describe(p, &run)
	return run
}

// servers returns the servers at the beginning.
func (p *Plan) servers() (all []history.Server) {
	for _, server := range p.Schedule.Servers {
		all = append(all, history.Server{Name: server.Name, Version: server.Version})
	}
	return all
}

// DryRun prints the steps and what the run would start. It starts no server. It asks the user's own
// kube-apiservers whether they take the user's own flags.
func (p *Plan) DryRun(ctx context.Context, out io.Writer) error {
	if err := p.Spec.Refuses("dry-run"); err != nil {
		return err
	}
	if err := p.askOwn(ctx, out); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s\n\nSteps:\n", p.Scenario.Name, p.Scenario.Happens)
	if p.Spec.At != nil && *p.Spec.At == 0 {
		fmt.Fprintln(out, heldHere)
	}
	for i, s := range p.Schedule.Steps {
		fmt.Fprintf(out, "  %2d. %s\n", i+1, s)
		if p.Spec.At != nil && *p.Spec.At == i+1 {
			fmt.Fprintln(out, heldHere)
		}
	}
	return p.backend.dryRun(p, out)
}

// printSchedule prints the plan as data.
func (p *Plan) printSchedule(out io.Writer) error {
	encoded, err := json.MarshalIndent(p.Schedule, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nThe plan as data:\n%s\n", encoded)
	return err
}
