package step

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// reconfigure starts a server, which may be running, with another setup. seen is true if a process
// with the present setup can be looked at. refused is true if the server did not start with it.
func (e *Executor) reconfigure(ctx context.Context, s *scenario.Step, seen, refused bool) error {
	configurer, ok := e.Cluster.(cluster.Configurer)
	if !ok {
		return errNoSetups
	}
	e.unblock(ctx, s.Server, seen)
	if s.Action != scenario.Start && !refused {
		if err := e.tolerate(e.Cluster.StopServer(ctx, s.Server)); err != nil {
			return err
		}
	}
	e.endSetup(s.Server)
	if err := configurer.Configure(s.Server, s.Setup); err != nil {
		return err
	}
	e.misconfigure(configurer, s.Server)
	err := e.tolerate(e.Cluster.StartServer(ctx, s.Server, s.Version))
	if refusal := (*scenario.RefusedError)(nil); errors.As(err, &refusal) {
		e.Refused(s.Server)
		return nil
	}
	return err
}

// misconfigure begins the faults that follow from the setups of this server and of the others.
func (e *Executor) misconfigure(configurer cluster.Configurer, server string) {
	for _, p := range e.state.BlockedPaths(server) {
		from := cmp.Or(p.From, fault.Client)
		if p.Obstacle == scenario.Unadvertised && e.Identifies && !e.state.Setup(p.From).IsPlain() {
			continue
		}
		if slices.ContainsFunc(e.on, func(f active) bool { return f.of == ofPath && f.From == from && f.To == p.To }) {
			continue
		}
		f := e.begin(ofPath, history.Fault{
			Kind: p.Obstacle.Fault(), From: from, To: p.To, Blocks: true, Detail: p.Obstacle.String(), Distrust: p.Obstacle.Distrust(),
		})
		f.obstacle, f.before = p.Obstacle, configurer.Dialled(from, p.To)
	}
	if kind, detail := e.state.Setup(server).Wrong(); kind != "" {
		e.beginAt(server, ofSetup, kind, detail)
	}
}

// touches reports whether a path leads from or to a server.
func (f *active) touches(server string) bool {
	return f.of == ofPath && (f.From == server || f.To == server)
}

// unblock ends the faults of paths from and to a server, before its process ends and no longer
// blocks anything. Evidence is attempted connections, and an endpoint lease that matches the setup.
// seen is true if the effect of the setup must be recorded too.
func (e *Executor) unblock(ctx context.Context, server string, seen bool) {
	configurer := e.Cluster.(cluster.Configurer)
	if seen {
		effect, err := configurer.Effect(ctx, server)
		e.report(err, "%s: read the effect of its configuration", server)
		e.Recorder.Effect(effect)
	}
	e.take(func(f *active) bool { return f.touches(server) }, func(f *active) {
		f.End = e.Clock.Now()
		f.Evidence.Affected = configurer.Dialled(f.From, f.To) - f.before
		if f.obstacle == scenario.Unadvertised || f.obstacle == scenario.Unroutable {
			effect, err := configurer.Effect(ctx, f.To)
			if err == nil && (effect.Advertised == "") == (f.obstacle == scenario.Unadvertised) {
				f.Evidence.Seen++
			}
		}
		e.Recorder.Fault(f.Fault)
	})
}

// endSetup ends the fault of a server's own setup after its process has ended. The fault lasted
// until then.
func (e *Executor) endSetup(server string) {
	e.take(func(f *active) bool { return f.of == ofSetup && f.Server == server }, e.ended)
}

// Refused records that a server did not start with its setup. The refusal is the fault, and nothing
// was blocked. For servers that a step starts, the executor calls Refused itself.
func (e *Executor) Refused(server string) {
	if e.state.Refused(server) {
		return
	}
	e.state.Refuse(server)
	var distrust history.Distrust
	e.take(func(f *active) bool { return f.touches(server) || f.of == ofSetup && f.Server == server }, func(f *active) {
		distrust = cmp.Or(distrust, f.Distrust)
	})
	f := e.beginAt(server, ofSetup, history.FaultMisconfiguration, "refused to start, "+e.state.Setup(server).String())
	f.Evidence.Refused, f.Distrust = 1, distrust
}
