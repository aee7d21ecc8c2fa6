package step

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// active is an active fault, with the known part of its record.
type active struct {
	history.Fault
	of     kind
	label  string              // of a link's fault
	link   cluster.ActiveFault // the rest of its record
	path   string              // of a document
	before int                 // count before the fault: of requests to a server, or of connections over a path
	// obstacle is the obstacle on a path.
	obstacle scenario.Obstacle
}

// kind says what the fault affects.
type kind uint8

const (
	ofLink     kind = iota
	ofProcess       // a kill or a pause
	ofDocument      // a discovery document
	ofPath          // a path that setups block
	ofSetup         // a server with a wrong setup
)

// begin records that a fault is active. The result is valid until the next fault begins or ends.
func (e *Executor) begin(of kind, record history.Fault) *active {
	e.faults++
	record.ID, record.Start = e.faults, e.Clock.Now()
	e.on = append(e.on, active{Fault: record, of: of})
	return &e.on[len(e.on)-1]
}

// beginAt does the same for a fault in a server. Its evidence is the requests while it is active.
func (e *Executor) beginAt(server string, of kind, kind, detail string) *active {
	f := e.begin(of, history.Fault{Kind: kind, Server: server, Detail: detail})
	f.before = e.Recorder.Asked(server)
	return f
}

// take ends the faults that match, in their order, and removes them.
func (e *Executor) take(match func(*active) bool, end func(*active)) {
	kept := e.on[:0]
	for i := range e.on {
		if f := &e.on[i]; match(f) {
			end(f)
		} else {
			kept = append(kept, *f)
		}
	}
	clear(e.on[len(kept):])
	e.on = kept
}

// ended records a fault of a server or of a document.
func (e *Executor) ended(f *active) {
	f.End = e.Clock.Now()
	if f.Server != "" {
		f.Evidence.Requests = e.Recorder.Asked(f.Server) - f.before
	}
	e.Recorder.Fault(f.Fault)
}

func (e *Executor) inject(ctx context.Context, s *scenario.Step) error {
	link, err := e.Cluster.Inject(ctx, *s.Fault)
	if err != nil {
		e.off(scenario.Step{Action: scenario.Heal, Label: s.Label})
		return err
	}
	f := e.begin(ofLink, history.Fault{})
	f.label, f.link = s.Label, link
	return nil
}

func (e *Executor) heal(ctx context.Context, label string) error {
	i := slices.IndexFunc(e.on, func(f active) bool { return f.of == ofLink && f.label == label })
	if i < 0 {
		return fmt.Errorf("heal %q: it was never on", label)
	}
	f := e.on[i]
	e.on = slices.Delete(e.on, i, i+1)
	record, err := f.link.Heal(ctx) // returns a record even if another program healed the link
	record.ID = f.ID
	e.Recorder.Fault(record)
	return err
}

// harm kills or pauses a server. The fault begins before the server notices.
func (e *Executor) harm(ctx context.Context, s *scenario.Step, do func(context.Context, string) error) error {
	e.beginAt(s.Server, ofProcess, string(s.Action), string(s.Action)+" "+s.Server)
	err := do(ctx, s.Server)
	if e.Tolerant && errors.Is(err, cluster.ErrNotRunning) {
		e.faults--
		e.on = e.on[:len(e.on)-1]
		return nil
	}
	return err
}

func (e *Executor) endProcessFault(server string, action scenario.Action) {
	e.take(func(f *active) bool { return f.of == ofProcess && f.Server == server && f.Kind == string(action) }, e.ended)
}

// breakDiscovery makes a document of a server fail. If the document fails already, that fault ends
// first.
func (e *Executor) breakDiscovery(s *scenario.Step) error {
	breaker, ok := e.Cluster.(cluster.DiscoveryBreaker)
	if !ok {
		return errNoBreaker
	}
	if err := e.restoreDiscovery(s.Server, s.Path); err != nil {
		return err
	}
	e.begin(ofDocument, history.Fault{Kind: string(s.Action), To: s.Server, Detail: s.Failure.Detail(s.Path)}).path = s.Path
	err := breaker.BreakDiscovery(s.Server, s.Path, s.Failure)
	if err != nil {
		e.on = e.on[:len(e.on)-1]
		e.off(scenario.Step{Action: scenario.RestoreDiscovery, Server: s.Server, Path: s.Path})
	}
	return err
}

// off makes the state forget a fault that did not begin, or that no step has ended.
func (e *Executor) off(end scenario.Step) { e.report(e.state.Apply(end), "forget a fault") }

// restoreDiscovery ends the fault of a document, if there is one. Its evidence is failed fetches.
func (e *Executor) restoreDiscovery(server, path string) (err error) {
	e.take(func(f *active) bool { return f.of == ofDocument && f.To == server && f.path == path }, func(f *active) {
		f.Evidence.Affected, err = e.Cluster.(cluster.DiscoveryBreaker).RestoreDiscovery(server, path)
		e.ended(f)
	})
	return err
}

// Heal ends the crowds and the faults of links that the plan left active, in their order, so that
// they are recorded. It also works after a cancelled run.
func (e *Executor) Heal() {
	e.disperseAll()
	for {
		i := slices.IndexFunc(e.on, func(f active) bool { return f.of == ofLink })
		if i < 0 {
			return
		}
		label := e.on[i].label
		e.report(e.heal(context.Background(), label), "heal %q", label)
		e.off(scenario.Step{Action: scenario.Heal, Label: label})
	}
}

// Finish ends all other faults that the plan left active: killed or paused processes, broken
// documents, which it restores, and misconfigurations. These faults last as long as the load sends
// requests.
func (e *Executor) Finish() {
	e.take(func(f *active) bool { return f.of == ofProcess }, e.ended)
	for {
		i := slices.IndexFunc(e.on, func(f active) bool { return f.of == ofDocument })
		if i < 0 {
			break
		}
		server, path := e.on[i].To, e.on[i].path
		e.report(e.restoreDiscovery(server, path), "restore %s of %s", path, server)
		e.off(scenario.Step{Action: scenario.RestoreDiscovery, Server: server, Path: path})
	}
	for _, server := range e.names {
		if e.state.Setup(server) != nil {
			e.unblock(context.Background(), server, !e.state.Refused(server))
			e.endSetup(server)
		}
	}
}

// report shows people an error that changes nothing.
func (e *Executor) report(err error, format string, args ...any) {
	if err != nil && e.Status != nil {
		e.Status(format+": %v", append(args, err)...)
	}
}
