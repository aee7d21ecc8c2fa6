package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/cluster/existing"
	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
)

// SubjectExternal is the subject of a proxy that is not known: a product of its own, or none.
const SubjectExternal = "external"

// existingSubjects are the subjects of servers that run already.
var existingSubjects = []string{SubjectExternal, scenario.SubjectBuiltin}

// existingBackend reads servers that run already and that skewproof did not start. It judges only
// what can be seen from outside.
type existingBackend struct {
	ways   []existing.Endpoint
	told   string // whose proxy it is, as the user says; empty if the servers say it
	seen   existing.Seen
	unseen []string // invariants that cannot be judged from outside
}

// read reads the servers from the kubeconfig. Their versions are not known before prepare.
func (b *existingBackend) read(p *Plan) (err error) {
	s := &p.Spec
	if s.Kubeconfig == "" {
		return Usagef("--backend %s needs --kubeconfig: the file that names the servers, a context for each", s.Backend)
	}
	s.QPS = cmp.Or(s.QPS, GentleQPS)
	if err := CheckQPS(s.QPS); err != nil {
		return err
	}
	b.ways, err = existing.Endpoints(s.Kubeconfig, s.Contexts)
	switch {
	case errors.Is(err, existing.ErrUnreadable):
		return &Error{KindNotRun, err}
	case err != nil:
		return err
	case len(b.ways) < p.Scenario.MinServers:
		return fmt.Errorf("%d servers: %s needs %d", len(b.ways), p.Scenario.Name, p.Scenario.MinServers)
	}
	b.told = s.Subject
	s.Subject, s.Servers = cmp.Or(s.Subject, SubjectExternal), len(b.ways)
	return nil
}

func (*existingBackend) check(p *Plan) error {
	if err := p.Schedule.OnlyReads(); err != nil {
		return fmt.Errorf("%s cannot run on servers that skewproof did not start: %w", p.Scenario.Name, err)
	}
	return nil
}

// prepare asks the servers for their versions, and whether their own proxies are on. The run is one
// from the oldest to the newest of these versions.
func (b *existingBackend) prepare(ctx context.Context, p *Plan) (err error) {
	var unanswered existing.Unanswered
	switch b.seen, err = existing.Look(ctx, b.ways); {
	case errors.As(err, &unanswered):
		return &Error{KindNotRun, err}
	case err != nil:
		return wrong(err)
	}
	if b.told == "" && len(b.seen.On) > 0 && len(b.seen.Before) == 0 {
		p.Spec.Subject = scenario.SubjectBuiltin
	}
	versions := slices.SortedFunc(maps.Values(b.seen.Versions), semver.Compare)
	p.Spec.From, p.Spec.To = versions[0], versions[len(versions)-1]
	if p.Scenario.NeedsTwoVersions && p.Spec.From == p.Spec.To {
		return Usagef("all servers are %s: %s is about resources that only some servers serve, and needs two versions", p.Spec.To,
			p.Scenario.Name)
	}
	if err := p.schedule(); err != nil {
		return wrong(err)
	}
	p.Schedule.Servers = nil
	for _, way := range b.ways { // the order does not matter, because a plan that only reads names no server
		p.Schedule.Servers = append(p.Schedule.Servers, scenario.Server{Name: way.Name, Version: b.seen.Versions[way.Name]})
	}
	if run := p.describe(); len(run.About) == 0 {
		return Usagef("%s is about %s, which cannot be judged from outside", p.Scenario.Name, strings.Join(p.Scenario.About, ", "))
	}
	return nil
}

// describe removes from About the invariants that cannot be judged from outside, and names them.
func (b *existingBackend) describe(p *Plan, run *history.Run) {
	b.unseen, run.About, run.External, run.Unnamed = nil, nil, true, b.seen.Unnamed
	for _, i := range invariant.All() {
		if !i.Outside {
			b.unseen = append(b.unseen, i.Name)
		}
	}
	for _, about := range p.Scenario.About {
		if !slices.Contains(b.unseen, about) {
			run.About = append(run.About, about)
		}
	}
	again := p.Spec
	again.Subject, again.From, again.To, again.Servers, again.Contexts = b.told, "", "", 0, nil // the user names only these
	for i, way := range b.ways {
		run.Servers[i].Address = strings.TrimPrefix(way.Config.Host, "https://")
		again.Contexts = append(again.Contexts, way.Name)
	}
	run.Reproduce = again.Command()
}

func (*existingBackend) dryRun(*Plan, io.Writer) error { return nil } // DryRun refuses this backend

func (b *existingBackend) carryOut(ctx context.Context, j *job, judge func(cut error)) error {
	facts := b.facts(j.Spec.Subject)
	var proxyless []string
	if j.Spec.Subject == scenario.SubjectBuiltin {
		proxyless = b.seen.Off
	}
	if err := j.begin(programs{}, slices.Concat(Machine(), []string{"servers that ran already; requests that read, no audit logs"}, facts)...); err != nil {
		return err
	}
	j.status("reading only, %g requests a second", j.Run.QPS)
	for _, fact := range facts {
		j.status("%s", fact)
	}
	made, err := record(ctx, j.Dir, j.manifest(programs{}), engine.Options{Status: j.status, ReadOnly: true},
		func(r *history.Recorder) (*existing.Cluster, error) {
			return existing.New(b.ways, b.seen.Versions, proxyless, r, j.status)
		})
	if made == nil {
		return err
	}
	made.Close()
	judge(err)
	return nil
}

// facts says what is known of the servers, and what is not judged.
func (b *existingBackend) facts(subject string) []string {
	all := []string{"not judged, since it cannot be seen from outside: " + strings.Join(b.unseen, ", ")}
	if on := b.seen.On; len(on) > 0 {
		all = append(all, fmt.Sprintf("kube-apiserver's own proxy (%s) is on: %s", scenario.Gate, strings.Join(on, ", ")))
	}
	if off := b.seen.Off; len(off) > 0 {
		all = append(all, fmt.Sprintf("kube-apiserver's own proxy (%s) is off: %s", scenario.Gate, strings.Join(off, ", ")))
	}
	if subject == SubjectExternal {
		all = append(all, "it is not known whose proxy this is, so no finding explains a violation; --subject builtin says that it is kube-apiserver's own")
	}
	if subject == SubjectExternal && b.told == "" && len(b.seen.On) > 0 && len(b.seen.Before) > 0 {
		all = append(all, "whose proxy answers is not known, since another process may stand in front of "+strings.Join(b.seen.Before, "; of ")+
			"; give contexts that lead to these addresses, or --subject builtin if only the way there differs")
	}
	if len(b.seen.Unnamed) > 0 {
		all = append(all, "the cluster has servers that no context names: "+strings.Join(b.seen.Unnamed, ", ")+
			"; nothing is judged that only they could explain, so name them too")
	}
	for _, unknown := range b.seen.Unknown {
		all = append(all, "not known: "+unknown)
	}
	return all
}
