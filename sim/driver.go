package sim

import (
	"cmp"
	"fmt"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim/vtime"
)

// readyPatience is how long a step waits for a server to be ready, or to end, before it goes on without.
const readyPatience = 30 * time.Second

// driver carries out the steps of a case one after the other, in a task of its own.
type driver struct {
	s         *Simulator
	task      *vtime.Task
	disturbed vtime.Time
	over      bool
	strict    bool // the first step that fails is the last
	kills     []*processFault
}

// processFault is a kill or a pause that is on.
type processFault struct {
	record history.Fault
	asked  int
}

func (d *driver) wake() {
	if d.task != nil && !d.over {
		d.task.Wake()
	}
}

// run brings the servers up and carries out the steps. Requests that are to follow a step are sent from its end on.
func (d *driver) run(t *vtime.Task, c *Case) {
	s := d.s
	d.task = t
	d.await(func() bool {
		for _, srv := range s.servers {
			if srv.phase != running {
				return false
			}
		}
		return true
	})
	d.disturbed = t.Now()
	s.startLoad()
	s.requestsAfter(c, 0)
	for i := range c.Steps {
		step := &c.Steps[i]
		record := history.Step{Index: i, Sentence: step.String(), Start: t.Now(), Disturbs: step.Disturbs()}
		s.trace.add(t.Now(), eventStep, i, 0, hashString(string(step.Action))^hashString(step.Server))
		err := d.do(step)
		record.End = t.Now()
		if record.Disturbs {
			d.disturbed = record.End
		}
		if err != nil {
			record.Error = err.Error()
		}
		s.history.Steps = append(s.history.Steps, record)
		if err != nil && d.strict {
			s.history.End.Error = fmt.Sprintf("step %d, %s: %v", i+1, step, err)
			break
		}
		s.requestsAfter(c, i+1)
	}
	d.restore()
	d.over = true
}

// restore ends what the steps have left of faults of servers, so that the history tells of it; those of links are healed in the end.
func (d *driver) restore() {
	for len(d.kills) > 0 {
		d.end(d.kills[0])
	}
	for _, srv := range d.s.servers {
		d.mend(srv, 0)
		d.mend(srv, 1)
		d.s.relieve(srv)
	}
}

// await waits for a condition, and not for ever.
func (d *driver) await(condition func() bool) bool {
	until := d.task.Now() + readyPatience
	d.s.loop.At(until, nil, d.wake)
	for !condition() {
		if d.task.Now() >= until {
			return false
		}
		d.task.Wait()
	}
	return true
}

func (d *driver) soak(until vtime.Time) {
	for d.task.Now() < until {
		d.task.Sleep(until - d.task.Now())
	}
}

func (d *driver) do(step *scenario.Step) error {
	s := d.s
	switch step.Action {
	case scenario.Soak:
		d.soak(d.task.Now() + step.For)
		return nil
	case scenario.Outlast:
		d.soak(d.disturbed + step.For)
		return nil
	case scenario.Sweep:
		s.sweep(d)
		return nil
	case scenario.Inject:
		s.inject(step.Label, *step.Fault)
		return nil
	case scenario.Heal:
		s.heal(step.Label)
		return nil
	case scenario.Define, scenario.Undefine:
		s.define(*step.Definition, step.Action == scenario.Define)
		return nil
	}
	return d.act(step, s.servers[s.byName[step.Server]])
}

// act does what concerns the process of one server.
func (d *driver) act(step *scenario.Step, srv *server) error {
	switch step.Action {
	case scenario.Start:
		d.ended(srv, scenario.Kill)
		return d.start(srv, step)
	case scenario.Stop:
		return d.stop(srv)
	case scenario.Kill:
		if srv.phase != down {
			d.began(srv, scenario.Kill)
			srv.kill(history.StateKilled, "")
		}
	case scenario.Pause:
		if srv.phase == running {
			d.began(srv, scenario.Pause)
			srv.pause()
		}
	case scenario.Resume:
		d.ended(srv, scenario.Pause)
		if srv.phase == running && !srv.gate.Open() {
			srv.resume()
		}
	case scenario.Restart, scenario.Replace:
		d.s.relieve(srv)
		if err := d.stop(srv); err != nil {
			return err
		}
		return d.start(srv, step)
	case scenario.BreakDiscovery:
		d.mend(srv, rootAt(step.Path))
		d.spoil(srv, step)
	case scenario.RestoreDiscovery:
		d.mend(srv, rootAt(step.Path))
	default:
		return fmt.Errorf("the simulator does not know how to %s", step.Action)
	}
	return nil
}

func (d *driver) start(srv *server, step *scenario.Step) error {
	if srv.phase != down {
		return nil // it is there already: it may have been asked to start before
	}
	v, release := srv.version, cmp.Or(step.Version, srv.release)
	if step.Version != "" || step.Setup.Like() != srv.setup.Like() {
		var err error
		if v, err = d.s.serves(release, step.Setup); err != nil {
			return err
		}
	}
	d.s.reached.note(ReachedRestart)
	d.s.configure(srv, step.Setup)
	srv.start(release, v)
	if !d.await(func() bool { return srv.phase == running || srv.phase == down }) || srv.phase == down && !srv.refused {
		return fmt.Errorf("start %s: not ready within %s", srv.name, readyPatience)
	}
	return nil
}

func (d *driver) stop(srv *server) error {
	if srv.phase == down {
		return nil
	}
	if srv.phase != stopping {
		srv.stop()
	}
	d.await(func() bool { return srv.phase == down })
	return nil
}

// began notes a fault of a process. Its evidence is what was asked of the process meanwhile.
func (d *driver) began(srv *server, kind scenario.Action) {
	d.s.faults++
	d.kills = append(d.kills, &processFault{
		record: history.Fault{ID: d.s.faults, Kind: string(kind), Server: srv.name, Detail: string(kind) + " " + srv.name, Start: d.task.Now()},
		asked:  d.s.asked[srv.index],
	})
}

func (d *driver) ended(srv *server, kind scenario.Action) {
	for i := 0; i < len(d.kills); {
		if f := d.kills[i]; f.record.Server == srv.name && f.record.Kind == string(kind) {
			d.end(f)
			continue
		}
		i++
	}
}

func (d *driver) end(f *processFault) {
	for i, o := range d.kills {
		if o == f {
			d.kills = append(d.kills[:i], d.kills[i+1:]...)
			break
		}
	}
	f.record.End = d.task.Now()
	f.record.Evidence.Requests = d.s.asked[d.s.byName[f.record.Server]] - f.asked
	d.s.history.Faults = append(d.s.history.Faults, f.record)
}

// spoil lets a discovery document of a server fail. It is a fault on every way to the server, of which most notice nothing.
func (d *driver) spoil(srv *server, step *scenario.Step) {
	d.s.faults++
	srv.spoiled[rootAt(step.Path)] = &spoiled{step.Failure, history.Fault{
		ID: d.s.faults, Kind: string(scenario.BreakDiscovery), To: srv.name, Detail: step.Failure.Detail(step.Path), Start: d.task.Now(),
	}}
}

func (d *driver) mend(srv *server, root int) {
	if f := srv.spoiled[root]; f != nil {
		srv.spoiled[root] = nil
		f.record.End = d.s.loop.Now()
		d.s.history.Faults = append(d.s.history.Faults, f.record)
	}
}

// rootAt is the index of a discovery document by its path.
func rootAt(path string) int {
	if path == "/api" {
		return 0
	}
	return 1
}
