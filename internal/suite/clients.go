package suite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/clients"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
)

// DefaultKubectl are the default versions of kubectl: those of the servers, and one minor version
// older.
var DefaultKubectl = []string{"v1.35.4", run.DefaultFrom, run.DefaultTo}

// Clients shows what kubectl of several versions can do through an older server of a control plane
// of two versions: without a proxy, with the builtin proxy, and with the reference.
type Clients struct {
	Options
	// Spec holds the settings of all runs.
	Spec run.Spec
	// Kubectl are the versions of kubectl.
	Kubectl []string
	// Page is the file of a documentation page that gets the table. If it is empty, no page is
	// written.
	Page string
}

// Every cluster has these servers: one is upgraded, and operations go through the other.
const newer, older = "a", "b"

// learnLimit is how long the servers of a cluster may take to learn of each other after the
// upgrade. It is many times the KEP's "seconds".
const learnLimit = 20 * time.Second

// Run makes the table, shows it and saves it.
func (c *Clients) Run(ctx context.Context) (reports.ClientsTable, error) {
	plans, err := c.plans()
	if err != nil {
		return reports.ClientsTable{}, err
	}
	if err := c.Prepare(ctx, "clients", plans); err != nil {
		return reports.ClientsTable{}, err
	}
	to := plans[0].Spec.To
	versions := c.Kubectl
	if !slices.Contains(versions, to) { // kubectl of this version prepares and checks the operations
		versions = append(slices.Clone(versions), to)
	}
	paths, identities, err := run.FetchKubectl(ctx, versions, c.Console.Progress)
	if err != nil {
		_ = os.Remove(c.Out)
		return reports.ClientsTable{}, err
	}
	began := time.Now()
	var cells []reports.ClientCell
	for _, p := range plans {
		cells = append(cells, c.cluster(ctx, p, paths)...)
	}
	table := reports.NewClientsTable(reports.ClientsMetadata{
		StartedAt: began.UTC(), DurationSeconds: reports.SecondsOf(time.Since(began)), SkewproofVersion: run.Version(),
		From: plans[0].Spec.From, To: to, Tested: reports.Tested{Label: c.Spec.Label, Binaries: append(c.Binaries, identities...)},
		Complete: ctx.Err() == nil,
	}, c.Kubectl, rows(), cells)
	table.Reproduce, table.Environment = c.Reproduce, run.Machine()
	return table, c.render(table)
}

// rows returns the operations as the table shows them.
func rows() (all []reports.ClientOperation) {
	for _, o := range clients.Operations() {
		all = append(all, o.ClientOperation)
	}
	return all
}

// plans returns one plan for the cluster of each subject. All servers run the older version first.
func (c *Clients) plans() (all []*run.Plan, err error) {
	if len(c.Kubectl) == 0 {
		return nil, run.Usagef("--kubectl is empty: name versions such as %s", DefaultKubectl[0])
	}
	for i, v := range c.Kubectl {
		if _, err := binaries.ParseVersion(binaries.Kubectl, v); err != nil {
			return nil, run.Usagef("--kubectl: %w", err)
		}
		if slices.Contains(c.Kubectl[:i], v) {
			return nil, run.Usagef("--kubectl names %s twice", v)
		}
	}
	// A custom plan names its own versions. So the defaults come from the plan of a scenario.
	common := c.Spec
	common.Scenario, common.Subject = "quiet", scenario.SubjectReference
	filled, err := common.Plan()
	if err != nil {
		return nil, err
	}
	from, to := filled.Spec.From, filled.Spec.To
	if from == to {
		return nil, run.Usagef("--from and --to are both %s: the table is about what only some servers serve, and needs two versions", from)
	}
	plan := scenario.Parameters{Servers: run.DefaultServers, From: from, To: to, Bounds: history.DefaultBounds}.Cluster(func(int) string { return from })
	plan.StartControllers(from, older)
	plan.Replace(newer, to)
	for _, subject := range []string{scenario.SubjectNone, scenario.SubjectBuiltin, scenario.SubjectReference} {
		spec := filled.Spec
		spec.Scenario, spec.Subject, spec.Servers, spec.Keep, spec.NoLoad, spec.At = "", subject, len(plan.Servers), true, true, new(1)
		spec.Own = &run.Own{
			Name: "clients", Happens: "kubectl asks an older server of a control plane of two versions.", Plan: *plan, Command: []string{"clients"},
		}
		p, err := spec.Plan()
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// cluster returns the cells of one subject. The cluster without a proxy also gives the cells of the
// newer server itself.
func (c *Clients) cluster(ctx context.Context, p *run.Plan, paths map[string]string) (cells []reports.ClientCell) {
	subject := p.Spec.Subject
	ways := map[string]string{subject: older} // path → context
	if subject == scenario.SubjectNone {
		ways[reports.ClientDirect] = newer + "-direct"
	}
	spec := p.Spec
	spec.Out = filepath.Join(c.Out, subject)
	homes := filepath.Join(c.Out, "homes-"+subject)
	defer func() { _ = os.RemoveAll(homes) }()
	way := func(path string) clients.Way {
		return clients.Way{
			Runner:  clients.Inside{Program: c.Program, Dir: spec.Out, Kubectl: paths},
			Context: ways[path], Newer: newer + "-direct", NewerVersion: spec.To, Homes: filepath.Join(homes, path),
		}
	}
	held, err := c.mixed(ctx, spec, ways, way)
	if held != nil {
		defer held.stop()
	}
	notRun := func(why string) attempt {
		return func(context.Context, clients.Operation, string) (reports.Did, string) { return reports.DidNotRun, why }
	}
	for _, path := range reports.ClientPaths {
		if ways[path] == "" {
			continue
		}
		for _, o := range clients.Operations() {
			try := way(path).Attempt
			if err != nil {
				try = notRun(err.Error())
			} else if path == reports.ClientDirect && o.Controllers {
				try = notRun("kube-controller-manager takes part, which is a client of an older server")
			}
			cells = append(cells, c.row(ctx, path, o, try)...)
		}
	}
	return cells
}

// attempt carries out an operation with kubectl of a version: see [clients.Way.Attempt].
type attempt = func(ctx context.Context, o clients.Operation, version string) (reports.Did, string)

// row returns the cells of an operation on one path. It runs kubectl of all versions at the same
// time.
func (c *Clients) row(ctx context.Context, path string, o clients.Operation, try attempt) []reports.ClientCell {
	cells := make([]reports.ClientCell, len(c.Kubectl))
	var all sync.WaitGroup
	for i, version := range c.Kubectl {
		all.Go(func() {
			did, why := try(ctx, o, version)
			cells[i] = reports.ClientCell{Operation: o.Name, Path: path, Client: version, Did: did, Reason: why}
		})
	}
	all.Wait()
	for _, cell := range cells {
		fmt.Fprintf(c.Console.Progress, "%s, %s, kubectl %s: %s\n", path, o.Name, cell.Client, cell.Did)
	}
	return cells
}

// mixed starts a cluster of the older version, lets every kubectl fill its discovery cache, which
// later is stale, and upgrades the newer server. It returns when operations can begin.
func (c *Clients) mixed(ctx context.Context, spec run.Spec, ways map[string]string, way func(string) clients.Way) (*heldCluster, error) {
	fmt.Fprintf(c.Console.Progress, "%s: starting the servers\n", spec.Subject)
	held, err := hold(ctx, c.Program, spec)
	if err != nil {
		return nil, fmt.Errorf("start the servers: %w", err)
	}
	for path := range ways {
		for _, version := range c.Kubectl {
			if err := way(path).FillStale(ctx, version); err != nil {
				return held, err
			}
		}
	}
	shown := run.Console{Out: c.Console.Progress, Progress: c.Console.Progress} // standard output is for the table
	if err := held.dir.Act(ctx, []string{"replace", newer, spec.To}, shown); err != nil {
		return held, fmt.Errorf("upgrade %s: %w", newer, err)
	}
	if !way(spec.Subject).Learned(ctx, learnLimit) {
		fmt.Fprintf(c.Console.Progress, "%s: %s after the upgrade, %s does not serve what only %s has\n", spec.Subject, learnLimit, older, newer)
	}
	return held, nil
}

// render saves the table, shows it, and writes the page.
func (c *Clients) render(table reports.ClientsTable) error {
	if err := RenderClients(table, c.Out, c.Console); err != nil || c.Page == "" {
		return err
	}
	return reports.SaveClientsPage(c.Page, table)
}

// RenderClients writes a table into dir and shows it.
func RenderClients(table reports.ClientsTable, dir string, c run.Console) error {
	return c.Show(dir, reports.SaveClients(dir, table), func(shown reports.SummaryOptions) error {
		return reports.WriteClientsText(c.Out, table, shown)
	})
}
