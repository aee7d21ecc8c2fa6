package sim

import (
	"cmp"
	"context"
	"fmt"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// The simulator is a cluster like the others: package cluster describes the methods below. Methods
// that wait do so in the driver's task.
var (
	_ cluster.Cluster          = (*driver)(nil)
	_ cluster.Configurer       = (*driver)(nil)
	_ cluster.DiscoveryBreaker = (*driver)(nil)
)

func (d *driver) server(name string) *server { return d.s.servers[d.s.byName[name]] }

// Start waits for the servers, which have already been started.
func (d *driver) Start(context.Context) error {
	if !d.await(readyPatience, func() bool {
		for _, srv := range d.s.servers {
			if srv.phase != running {
				return false
			}
		}
		return true
	}) {
		return fmt.Errorf("not every server was ready within %s", readyPatience)
	}
	return nil
}

func (d *driver) StartServer(_ context.Context, name, version string) error {
	srv := d.server(name)
	if srv.phase != down {
		return cluster.ErrRunning
	}
	setup := srv.next
	v, release := srv.version, cmp.Or(version, srv.release)
	if version != "" || setup.Like() != srv.setup.Like() {
		var err error
		if v, err = d.s.serves(release, setup); err != nil {
			return err
		}
	}
	d.s.reached.note(ReachedRestart)
	srv.start(release, v)
	ended := d.await(readyPatience, func() bool { return srv.phase == running || srv.phase == down })
	switch {
	case srv.refused:
		return &scenario.RefusedError{Server: name, Why: srv.setup.String()}
	case !ended || srv.phase == down:
		return fmt.Errorf("start %s: not ready within %s", name, readyPatience)
	}
	return nil
}

func (d *driver) StopServer(_ context.Context, name string) error {
	srv := d.server(name)
	switch srv.phase {
	case down:
		return cluster.ErrNotRunning
	case stopping:
	default:
		srv.stop()
	}
	patience := readyPatience + srv.setup.Drain() + scenario.DrainsWithin
	if !d.await(patience, func() bool { return srv.phase == down }) {
		return fmt.Errorf("stop %s: it still runs after %s", name, patience)
	}
	return nil
}

func (d *driver) KillServer(_ context.Context, name string) error {
	srv := d.server(name)
	if srv.phase == down {
		return cluster.ErrNotRunning
	}
	srv.kill(history.StateKilled, "")
	return nil
}

func (d *driver) PauseServer(_ context.Context, name string) error {
	srv := d.server(name)
	if srv.phase != running {
		return cluster.ErrNotRunning
	}
	if srv.gate.Open() {
		srv.pause()
	}
	return nil
}

func (d *driver) ResumeServer(_ context.Context, name string) error {
	srv := d.server(name)
	if srv.phase != running {
		return cluster.ErrNotRunning
	}
	if !srv.gate.Open() {
		srv.resume()
	}
	return nil
}

func (d *driver) ReplaceServer(ctx context.Context, name, version string) error {
	if err := d.StopServer(ctx, name); err != nil {
		return err
	}
	return d.StartServer(ctx, name, version)
}

func (d *driver) Serving(name string) int {
	i, ok := d.s.byName[name]
	if !ok || d.s.servers[i].phase != running {
		return 0
	}
	return d.s.servers[i].incarnation
}

func (d *driver) Inject(_ context.Context, f fault.Fault) (cluster.ActiveFault, error) {
	return d.s.inject(f), nil
}

func (a *active) Heal(context.Context) (history.Fault, error) {
	a.s.heal(a)
	return a.record, nil
}

func (d *driver) Configure(name string, setup *scenario.Setup) error {
	d.server(name).next = setup
	return nil
}

func (d *driver) Dialled(from, to string) int {
	return d.s.link(d.s.endpoint(from), d.s.endpoint(to)).dialled
}

// Effect implements [cluster.Configurer].
func (d *driver) Effect(_ context.Context, name string) (history.Effect, error) {
	srv := d.server(name)
	effect := history.Effect{Server: name, Incarnation: d.Serving(name), At: d.Now(), Setup: srv.setup.String()}
	if srv.lease.endpoint {
		effect.Advertised = srv.lease.address
	}
	return effect, nil
}

func (d *driver) BreakDiscovery(name, path string, how fault.DiscoveryFailure) error {
	d.server(name).broken[rootAt(path)] = brokenDocument{on: true, how: how}
	return nil
}

func (d *driver) RestoreDiscovery(name, path string) (failed int, err error) {
	broken := &d.server(name).broken[rootAt(path)]
	failed = broken.failed
	*broken = brokenDocument{}
	return failed, nil
}

// rootAt is the index of a discovery document by its path.
func rootAt(path string) int {
	if path == "/api" {
		return 0
	}
	return 1
}
