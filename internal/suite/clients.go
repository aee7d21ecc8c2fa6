package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/clients"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/libraries"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
)

// DefaultClients are the clients of the table, as COMPONENT@VERSION: kubectl of the servers'
// versions and of one minor older, and every version of the libraries that there is a program for.
func DefaultClients() (all []string) {
	for _, v := range []string{"v1.35.4", run.DefaultFrom, run.DefaultTo} {
		all = append(all, named(binaries.Kubectl, v))
	}
	for _, library := range clientLibraries {
		for _, v := range libraries.Versions(string(library)) {
			all = append(all, named(library, v))
		}
	}
	return all
}

var clientLibraries = []binaries.Component{binaries.ClientGo, binaries.ControllerRuntime, binaries.ClientNode}

func named(c binaries.Component, version string) string { return string(c) + "@" + version }

// Clients shows what clients of several versions can do through an older server of a control plane
// of two versions: without a proxy, with the builtin one and with the reference.
type Clients struct {
	Options
	// Spec has the settings that all runs have in common. Its binaries may include binaries of
	// clients.
	Spec run.Spec
	// Clients are the clients, as COMPONENT@VERSION.
	Clients []string
	// Focus is a regular expression that chooses among the operations by name. Empty: all.
	Focus string
	// Page is the file of a page of the documentation that gets the table; empty: none.
	Page string

	refs       []binaries.Ref
	own        binaries.Overrides // those binaries that are of clients
	operations []clients.Operation
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
	left, err := c.leaveOut(ctx)
	if err != nil {
		_ = os.Remove(c.Out)
		return reports.ClientsTable{}, err
	}
	paths, identities, err := run.FetchClients(ctx, c.own, c.needed(to), c.Console.Progress)
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
		Made: reports.NewMade(began, run.Version()),
		From: plans[0].Spec.From, To: to, Tested: reports.Tested{Label: c.Spec.Label, Binaries: append(c.Binaries, identities...)},
		Complete: ctx.Err() == nil, LeftOut: left,
	}, c.programs(), c.rows(), cells)
	table.Reproduce, table.Environment = c.Reproduce, run.Machine()
	return table, c.render(table)
}

// leaveOut removes the optional clients that cannot run on this machine: those that need Node.js.
// It returns each with the reason. It is an error if no client remains.
func (c *Clients) leaveOut(ctx context.Context) (left []string, err error) {
	var refs []binaries.Ref
	for _, ref := range c.refs {
		if ref.Component == binaries.ClientNode {
			_, _, err := run.FetchClients(ctx, c.own, []binaries.Ref{ref}, c.Console.Progress)
			if errors.Is(err, binaries.ErrUnavailable) && ctx.Err() == nil {
				left = append(left, fmt.Sprintf("%s %s: %s", ref.Component, ref.Version, whyUnavailable(err)))
				fmt.Fprintf(c.Console.Progress, "left out: %s\n", left[len(left)-1])
				continue
			} else if err != nil {
				return nil, err
			}
		}
		refs = append(refs, ref)
	}
	if len(refs) == 0 {
		return nil, fmt.Errorf("no client is left: %s", strings.Join(left, "; "))
	}
	c.refs = refs
	c.operations = slices.DeleteFunc(c.operations, func(o clients.Operation) bool { return len(c.versions(o.Program)) == 0 })
	return left, nil
}

// whyUnavailable is why a client cannot be had, in one line.
func whyUnavailable(err error) string {
	if why := new(binaries.UnavailableError); errors.As(err, &why) && len(why.Attempts) > 0 {
		err = why.Attempts[len(why.Attempts)-1].Err
	}
	return clients.FirstLine(err.Error())
}

// needed are the clients of the table, and the kubectl that prepares and looks.
func (c *Clients) needed(to string) []binaries.Ref {
	newest := binaries.Ref{Component: binaries.Kubectl, Version: binaries.Version(to)}
	if slices.Contains(c.refs, newest) {
		return c.refs
	}
	return append(slices.Clone(c.refs), newest)
}

// programs are the clients as the table shows them.
func (c *Clients) programs() (all []reports.ClientProgram) {
	for _, r := range c.refs {
		i := slices.IndexFunc(all, func(p reports.ClientProgram) bool { return p.Name == string(r.Component) })
		if i < 0 {
			i = len(all)
			all = append(all, reports.ClientProgram{Name: string(r.Component)})
		}
		all[i].Versions = append(all[i].Versions, string(r.Version))
	}
	return all
}

// versions returns the versions of a program.
func (c *Clients) versions(program string) (all []string) {
	for _, p := range c.programs() {
		if p.Name == program {
			all = p.Versions
		}
	}
	return all
}

// rows are the operations as the table shows them.
func (c *Clients) rows() (all []reports.ClientOperation) {
	for _, o := range c.operations {
		all = append(all, o.ClientOperation)
	}
	return all
}

// choose reads the clients, and chooses the operations that they have.
func (c *Clients) choose() error {
	c.refs, c.operations = nil, nil
	if len(c.Clients) == 0 {
		return run.Usagef("--clients is empty: name clients such as %s", DefaultClients()[0])
	}
	for _, name := range c.Clients {
		component, version, ok := strings.Cut(name, "@")
		if !ok {
			return run.Usagef("--clients names %q: write COMPONENT@VERSION, such as %s", name, DefaultClients()[0])
		}
		ref := binaries.Ref{Component: binaries.Component(component)}
		if ref.Component != binaries.Kubectl && !slices.Contains(clientLibraries, ref.Component) {
			return run.Usagef("--clients names %s, which is not a client: want kubectl, client-go, controller-runtime or client-node", name)
		}
		var err error
		ref.Version, err = binaries.ParseVersion(ref.Component, version)
		switch {
		case err != nil:
			return run.Usagef("--clients: %w", err)
		case slices.Contains(c.refs, ref):
			return run.Usagef("--clients names %s twice", name)
		case ref.Component != binaries.Kubectl && !slices.Contains(libraries.Versions(string(ref.Component)), string(ref.Version)):
			return run.Usagef("--clients names %s: skewproof has a program for %s of %s only", name, ref.Component,
				strings.Join(libraries.Versions(string(ref.Component)), ", "))
		}
		c.refs = append(c.refs, ref)
	}
	focus, err := regexp.Compile(c.Focus)
	if err != nil {
		return run.Usagef("--focus %q: %w", c.Focus, err)
	}
	for _, o := range clients.Operations() {
		if focus.MatchString(o.Name) && len(c.versions(o.Program)) > 0 {
			c.operations = append(c.operations, o)
		}
	}
	if len(c.operations) == 0 {
		return run.Usagef("--focus %q: no operation of the clients has such a name", c.Focus)
	}
	return nil
}

// takeOwn takes the binaries of clients from those that are the user's own. The others are for the
// servers: each run checks them.
func (c *Clients) takeOwn(to string) error {
	own := c.Spec.Binaries
	c.own = own.Of(c.needed(to))
	for ref := range c.own {
		if err := own.Check(ref); err != nil {
			return run.Usagef("--binary: %w", err)
		}
	}
	c.Spec.Binaries = binaries.Overrides{}
	for ref, path := range own {
		if _, client := c.own[ref]; !client {
			c.Spec.Binaries[ref] = path
		}
	}
	return nil
}

// plans returns the plans of one cluster for each subject. All servers run the older version first.
func (c *Clients) plans() (all []*run.Plan, err error) {
	if err := c.choose(); err != nil {
		return nil, err
	}
	if err := c.takeOwn(cmp.Or(c.Spec.To, run.DefaultTo)); err != nil {
		return nil, err
	}
	// A custom plan names its own versions. So the defaults come from the plan of a scenario.
	common := c.Spec
	common.Scenario, common.Subject = "quiet", scenario.SubjectBuiltin
	filled, err := common.Plan()
	if err != nil {
		return nil, err
	}
	from, to := filled.Spec.From, filled.Spec.To
	if from == to {
		return nil, run.Usagef("--from and --to are both %s: the table is about kinds that only some servers serve, and needs two versions", from)
	}
	plan := scenario.Parameters{Servers: run.DefaultServers, From: from, To: to,
		Bounds: history.DefaultBounds}.Cluster(func(int) string { return from })
	plan.StartControllers(from, older)
	plan.Replace(newer, to)
	for _, subject := range []string{scenario.SubjectNone, scenario.SubjectBuiltin, scenario.SubjectReference} {
		spec := filled.Spec
		spec.Scenario, spec.Subject, spec.Servers, spec.Keep, spec.NoLoad, spec.At = "", subject, len(plan.Servers), true, true, new(1)
		spec.Binaries = filled.Spec.Binaries.Of(spec.Used())
		spec.Own = &run.Own{
			Name: "clients", Happens: "Clients ask an older server of a control plane of two versions.", Plan: *plan, Command: []string{"clients"},
		}
		p, err := spec.Plan()
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// cluster fills the cells of one subject. Those of the newer server itself are filled with the
// subject that has no proxy.
func (c *Clients) cluster(ctx context.Context, p *run.Plan, paths map[binaries.Ref]string) (cells []reports.ClientCell) {
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
			Runner:  clients.Inside{Program: c.Program, Dir: spec.Out, Clients: paths},
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
		for _, o := range c.operations {
			try := way(path).Attempt
			if err != nil {
				try = notRun(err.Error())
			} else if path == reports.ClientDirect && o.Controllers {
				try = notRun("the operation needs kube-controller-manager, which is a client of an older server")
			}
			cells = append(cells, c.row(ctx, path, o, try)...)
		}
	}
	return cells
}

// attempt carries out an operation with its program of a version: see [clients.Way.Attempt].
type attempt = func(ctx context.Context, o clients.Operation, version string) (reports.Did, string)

// row are the cells of an operation by one path: all versions of its program at the same time.
func (c *Clients) row(ctx context.Context, path string, o clients.Operation, try attempt) []reports.ClientCell {
	versions := c.versions(o.Program)
	cells := make([]reports.ClientCell, len(versions))
	var all sync.WaitGroup
	for i, version := range versions {
		all.Go(func() {
			did, why := try(ctx, o, version)
			cells[i] = reports.ClientCell{Operation: o.Name, Path: path, Client: version, Did: did, Reason: why}
		})
	}
	all.Wait()
	for _, cell := range cells {
		fmt.Fprintf(c.Console.Progress, "%s, %s, %s %s: %s\n", path, o.Name, o.Program, cell.Client, cell.Did)
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
		for _, version := range c.versions(string(binaries.Kubectl)) {
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
	if err := Render(table, c.Out, c.Console); err != nil || c.Page == "" {
		return err
	}
	return reports.SaveClientsPage(c.Page, table)
}
