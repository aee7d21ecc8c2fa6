package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Configurer is a [Cluster] whose servers can be started with a setup of their own.
type Configurer interface {
	// Configure says how the next process of a server, which is not running, is set up; nil: as the subject says. A start that the server
	// itself refuses ends in a [scenario.RefusedError].
	Configure(server string, setup *scenario.Setup) error
	// Dialled is how many connections somebody (a server, or [fault.Client]) has made so far to where a server is, or says that it is.
	Dialled(from, to string) int
	// Effect is what the configuration of a server's present process is seen to do.
	Effect(ctx context.Context, server string) (history.Effect, error)
}

// configuration is how servers are set up at present, and what that hinders. The zero value is that none has a setup.
type configuration struct {
	setups  map[string]*scenario.Setup
	hinders []*hindrance
	refused map[string]bool // these do not run: they would not start
}

// hindrance is a way that cannot work, or a server that is not as it should be, with its record.
type hindrance struct {
	scenario.BlockedPath // its ends are empty in the record of a server
	fault                history.Fault
	dialled, asked       int // before it began
}

// configureFirst sets servers up that are first started with a setup of their own.
func (e *executor) configureFirst(plan scenario.Plan) error {
	if !plan.Setups() {
		return nil
	}
	cluster, ok := e.cluster.(Configurer)
	if !ok {
		return errors.New("this backend cannot start servers with a setup of their own: choose another scenario, or backend local or sim")
	}
	e.servers = nil
	for _, s := range plan.Servers {
		e.servers = append(e.servers, s.Name)
	}
	e.setups, e.refused = map[string]*scenario.Setup{}, map[string]bool{}
	for _, s := range plan.Servers {
		if s.Setup == nil {
			continue
		}
		if err := cluster.Configure(s.Name, s.Setup); err != nil {
			return err
		}
		e.setups[s.Name] = s.Setup
	}
	for _, s := range plan.Servers {
		if s.Setup != nil {
			e.hinder(cluster, s.Name)
		}
	}
	return nil
}

// restart starts a server, which may be running, anew. handled is false if neither the process that it has nor the one that it gets has a setup
// of its own: then it is started as ever.
func (e *executor) restart(ctx context.Context, s scenario.Step) (handled bool, err error) {
	if s.Setup == nil && e.setups[s.Server] == nil {
		return false, nil
	}
	cluster, ok := e.cluster.(Configurer)
	if !ok {
		return true, fmt.Errorf("this backend cannot start %s with a setup of its own", s.Server)
	}
	e.relieve(ctx, cluster, s.Server)
	if s.Action != scenario.Start && !e.refused[s.Server] {
		if err := e.cluster.StopServer(ctx, s.Server); err != nil {
			return true, err
		}
	}
	e.absolve(s.Server)
	if err := cluster.Configure(s.Server, s.Setup); err != nil {
		return true, err
	}
	delete(e.refused, s.Server)
	delete(e.setups, s.Server)
	if s.Setup != nil {
		e.setups[s.Server] = s.Setup
	}
	e.hinder(cluster, s.Server)
	err = e.cluster.StartServer(ctx, s.Server, s.Version)
	var refused *scenario.RefusedError
	if errors.As(err, &refused) {
		e.refuse(s)
		err = nil
	}
	return true, err
}

// hinder begins what the setup of a server hinders, beside what goes on.
func (e *executor) hinder(cluster Configurer, server string) {
	on := map[scenario.BlockedPath]bool{}
	for _, h := range e.hinders {
		on[h.BlockedPath] = true
	}
	for _, m := range scenario.BlockedPaths(e.servers, e.setups, server) {
		if on[m] {
			continue
		}
		h := e.begin(m.Obstacle.String(), m.Obstacle.Fault())
		h.BlockedPath, h.dialled = m, cluster.Dialled(cmp.Or(m.From, fault.Client), m.To)
		h.fault.From, h.fault.To, h.fault.Blocks = cmp.Or(m.From, fault.Client), m.To, true
		h.fault.Distrust = m.Obstacle.Distrust()
	}
	if kind, what := e.setups[server].Wrong(); kind != "" {
		h := e.begin(what, kind)
		h.asked, h.fault.Server = e.recorder.Asked(server), server
	}
}

func (e *executor) begin(detail, kind string) *hindrance {
	e.faults++
	h := &hindrance{fault: history.Fault{ID: e.faults, Kind: kind, Detail: detail, Start: e.recorder.Now()}}
	e.hinders = append(e.hinders, h)
	return h
}

// relieve ends what the setup of a server, which is about to end, hinders, and writes down what was seen of it. A way must not count as
// hindered when the process is gone that hindered it.
func (e *executor) relieve(ctx context.Context, cluster Configurer, server string) {
	seen, err := cluster.Effect(ctx, server)
	if err != nil {
		e.status("%s: look at the effect of its configuration: %v", server, err)
	}
	if !e.refused[server] && e.setups[server] != nil {
		e.recorder.Effect(seen)
	}
	var still []*hindrance
	for _, h := range e.hinders {
		if h.From != server && h.To != server {
			still = append(still, h)
			continue
		}
		e.end(ctx, h, cluster)
	}
	e.hinders = still
}

// absolve ends what is wrong with a server itself, whose process is gone: to its end it was as it was.
func (e *executor) absolve(server string) {
	var still []*hindrance
	for _, h := range e.hinders {
		if h.fault.Server != server {
			still = append(still, h)
			continue
		}
		h.fault.End = e.recorder.Now()
		h.fault.Evidence.Requests = e.recorder.Asked(server) - h.asked
		e.recorder.Fault(h.fault)
	}
	e.hinders = still
}

// end writes a hindrance down with what shows it to be real: whoever dialled, and the lease that leads nowhere.
func (e *executor) end(ctx context.Context, h *hindrance, cluster Configurer) {
	h.fault.End = e.recorder.Now()
	h.fault.Evidence.Affected = cluster.Dialled(h.fault.From, h.fault.To) - h.dialled
	if h.Obstacle == scenario.Unadvertised || h.Obstacle == scenario.Unroutable {
		seen, err := cluster.Effect(ctx, h.To)
		if err == nil && (seen.Advertised == "") == (h.Obstacle == scenario.Unadvertised) {
			h.fault.Evidence.Seen++
		}
	}
	e.healed = append(e.healed, h.fault) // the requests that went through all the same are counted later
}

// refuse notes that a server would not start: nothing that its setup would have hindered was hindered.
func (e *executor) refuse(s scenario.Step) {
	var still []*hindrance
	var distrust history.Distrust
	for _, h := range e.hinders {
		if h.From != s.Server && h.To != s.Server && h.fault.Server != s.Server {
			still = append(still, h)
			continue
		}
		distrust = cmp.Or(distrust, h.fault.Distrust)
	}
	e.hinders = still
	e.refused[s.Server] = true
	h := e.begin("refused to start, "+s.Setup.String(), history.FaultMisconfiguration)
	h.fault.Server, h.asked = s.Server, e.recorder.Asked(s.Server)
	h.fault.Evidence.Refused, h.fault.Distrust = 1, distrust
}

// relieveAll ends what is still hindered at the end of the run.
func (e *executor) relieveAll() {
	cluster, ok := e.cluster.(Configurer)
	if !ok {
		return
	}
	for _, server := range e.servers {
		if e.setups[server] != nil {
			e.relieve(context.Background(), cluster, server)
			e.absolve(server)
		}
	}
}
