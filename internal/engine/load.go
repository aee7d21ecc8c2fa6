package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/step"
	"github.com/skewproof/skewproof/internal/traffic"
	"github.com/skewproof/skewproof/internal/workload"
)

// sweepQPS limits a sweep, so that it does not starve the load and the servers on a small machine.
const sweepQPS = 400

// load is the traffic of a run, together with the ground truth that it uses.
type load struct {
	truth    *truth
	leases   *leases
	cluster  cluster.Reachable
	recorder *history.Recorder
	clients  *traffic.Clients
	traffic  *traffic.Load
	servers  []string
	// verbs are the verbs that a sweep tries (nil: all). sweepQPS is its largest rate in requests a
	// second.
	verbs    []string
	sweepQPS float64
	status   func(string, ...any)
	subject  string // whose proxy the servers run
	// crowdToken is the token of the caller of crowds; "" if the load only reads.
	crowdToken string
}

// sender sends requests to the servers during a run.
type sender interface {
	step.Load
	// served is what each ready server serves itself, as far as it is known.
	served() map[string]history.Document
	// run sends requests until ctx ends.
	run(ctx context.Context)
	// count records what every ready server has counted. It is called when run has returned.
	count(ctx context.Context)
	close()
}

// newSender returns the load of a run, or a sender that sends nothing. It has looked at every
// server once.
func newSender(ctx context.Context, plan scenario.Plan, cluster cluster.Reachable, recorder *history.Recorder, o Options) (sender, error) {
	if o.NoLoad && !plan.ReadsEtcd() {
		return idle{}, nil
	}
	if o.NoLoad { // owners must be created on a server that serves them
		t, err := newTruth(cluster, plan.Names(), recorder, o.Status)
		if err != nil {
			return nil, err
		}
		t.changed = func(map[string]history.Document) {}
		t.observe(ctx, plan.Names()...)
		return idle{t}, nil
	}
	l, err := newLoad(ctx, plan, cluster, recorder, o)
	if err != nil {
		return nil, err
	}
	l.Observe(ctx, l.servers...)
	return l, nil
}

// idle sends no load. If it has a truth, it asks servers what they serve after a step that may have
// changed this.
type idle struct{ *truth }

func (idle) Sweep(context.Context) error { return nil }
func (idle) run(context.Context)         {}
func (idle) count(context.Context)       {}
func (idle) close()                      {}

// Observe implements [step.Load].
func (i idle) Observe(ctx context.Context, servers ...string) {
	if i.truth != nil {
		i.observe(ctx, servers...)
	}
}

func (l *load) served() map[string]history.Document { return l.truth.served() }
func (l *load) close()                              { l.clients.Close() }

func newLoad(ctx context.Context, plan scenario.Plan, cluster cluster.Reachable, recorder *history.Recorder, o Options) (*load, error) {
	var servers []string
	var targets []traffic.Target
	for _, s := range plan.Servers {
		url, err := cluster.URL(s.Name)
		if err != nil {
			return nil, err
		}
		target := traffic.Target{Server: s.Name, URL: url}
		if o.ReadOnly {
			if target.Config, err = cluster.Direct(s.Name); err != nil {
				return nil, err
			}
		}
		servers, targets = append(servers, s.Name), append(targets, target)
	}
	l := &load{cluster: cluster, recorder: recorder, servers: servers, sweepQPS: sweepQPS, status: o.Status, subject: o.Subject}
	var callers []traffic.Identity
	var err error
	if o.ReadOnly {
		callers = []traffic.Identity{{Name: "admin", User: workload.Admin}} // each target has its own configuration
		plan.Nodes = 0                                                      // nobody is impersonated there
		l.verbs = workload.ReadVerbs
		l.sweepQPS = min(l.sweepQPS, 2*o.QPS) // these servers also have other users
	} else if callers, l.crowdToken, err = identities(ctx, cluster, servers[0]); err != nil {
		return nil, err
	}
	if l.truth, err = newTruth(cluster, servers, recorder, o.Status); err != nil {
		return nil, err
	}
	l.leases = newLeases(cluster, recorder, o.Status)
	if l.clients, err = traffic.NewClients(targets, callers, recorder); err != nil {
		return nil, err
	}
	l.traffic = traffic.NewLoad(l.clients,
		traffic.Options{QPS: o.QPS, Seed: o.Seed, ReadOnly: o.ReadOnly, Profile: plan.Traffic, Nodes: plan.Nodes})
	var classifier workload.Classifier // truth makes no concurrent calls of it
	l.truth.changed = func(live map[string]history.Document) { l.traffic.SetProbes(classifier.Classify(live)) }
	return l, nil
}

// identities sets up the requirements of the load through one server, and returns its identities
// and the token of the caller of crowds.
func identities(ctx context.Context, cluster cluster.Reachable, server string) (all []traffic.Identity, crowd string, err error) {
	config, err := cluster.Direct(server)
	if err != nil {
		return nil, "", err
	}
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, "", fmt.Errorf("prepare the load: %w", err)
	}
	setup, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	token, crowd, err := traffic.Setup(setup, admin)
	if err != nil {
		return nil, "", fmt.Errorf("prepare the load: %w", err)
	}
	reader, err := cluster.User(workload.Reader)
	if err != nil {
		return nil, "", err
	}
	account := rest.CopyConfig(cluster.Anonymous())
	account.BearerToken = token
	impersonating := rest.CopyConfig(cluster.Admin())
	impersonating.Impersonate = rest.ImpersonationConfig{
		UserName: workload.Impersonated, UID: "skewproof-uid", Groups: []string{workload.ImpersonatedGroup},
		Extra: map[string][]string{"skewproof.dev/reason": {"a test", "another value"}},
	}
	node := rest.CopyConfig(cluster.Admin())
	node.Impersonate = rest.ImpersonationConfig{UserName: workload.Node, Groups: []string{workload.NodesGroup}}
	return []traffic.Identity{
		{Name: "admin", User: workload.Admin, Config: *cluster.Admin()},
		{Name: "reader", User: workload.Reader, Config: *reader},
		{Name: "service-account", User: workload.ServiceAccountUser, Config: *account},
		{Name: "impersonator", User: workload.Impersonated, Impersonator: workload.Admin, Config: *impersonating},
		{Name: "node", User: workload.Node, Impersonator: workload.Admin, Config: *node},
	}, crowd, nil
}

// run sends the load and follows the ground truth until ctx ends. It cannot fail, because all
// outcomes are recorded, and too few requests make the verdict inconclusive.
func (l *load) run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { l.truth.watch(ctx) })
	all.Go(func() { l.leases.watch(ctx, l.servers) })
	all.Go(func() { l.traffic.Run(ctx) })
	all.Wait()
}

// Observe asks these servers what they serve now.
func (l *load) Observe(ctx context.Context, servers ...string) { l.truth.observe(ctx, servers...) }

// Sweep visits, on every server, everything that any server serves or lists.
func (l *load) Sweep(ctx context.Context) error {
	swept, err := traffic.Sweep(ctx, l.clients, l.truth.listed(ctx), traffic.SweepOptions{QPS: l.sweepQPS, Verbs: l.verbs})
	if err != nil {
		return err
	}
	l.status("swept %d resources and subresources with %d requests", swept.Resources, swept.Requests)
	return nil
}
