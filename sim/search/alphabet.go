package search

import (
	"fmt"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

// The kinds of events of an exhaustive search. Each is a switch: in any state it does at most one thing.
type eventKind uint8

const (
	eventCut     eventKind = iota // what one server dials of another; or heals it
	eventEtcd                     // what one server dials of etcd; or heals it
	eventKill                     // a server that runs or is paused; or starts one that does not run
	eventPause                    // a server that runs; or resumes it
	eventRestart                  // a server that runs
	eventReplace                  // a server that runs, by the other version
	eventDefine                   // a custom resource; or deletes it
)

// event is a letter of the alphabet.
type event struct {
	kind     eventKind
	from, to int // servers; to is of cuts only
}

// alphabet lists the events that there are with so many servers.
func alphabet(servers int) []event {
	var all []event
	for from := range servers {
		for to := range servers {
			if from != to {
				all = append(all, event{eventCut, from, to})
			}
		}
	}
	for _, kind := range []eventKind{eventEtcd, eventKill, eventPause, eventRestart, eventReplace} {
		for server := range servers {
			all = append(all, event{kind, server, 0})
		}
	}
	return append(all, event{kind: eventDefine})
}

// String is the event in words.
func (e event) String() string {
	from, to := scenario.ServerName(e.from), scenario.ServerName(e.to)
	switch e.kind {
	case eventCut:
		return fmt.Sprintf("cut %s→%s, or heal it", from, to)
	case eventEtcd:
		return fmt.Sprintf("cut %s→etcd, or heal it", from)
	case eventKill:
		return fmt.Sprintf("kill %s, or start it", from)
	case eventPause:
		return fmt.Sprintf("pause %s, or resume it", from)
	case eventRestart:
		return "restart " + from
	case eventReplace:
		return fmt.Sprintf("replace %s by the other version", from)
	default:
		return "define a custom resource, or delete it"
	}
}

// stage is the state of a control plane in which events are carried out. It is a value: a copy is another stage.
type stage struct {
	process [mostExhausted]processState
	newer   [mostExhausted]bool
	cut     [mostExhausted][mostExhausted + 1]bool // the last column is etcd
	defined bool
}

// possible reports whether an event can be carried out, and returns the stage after it.
func (s stage) possible(e event) (stage, bool) {
	p := &s.process[e.from]
	switch e.kind {
	case eventCut:
		s.cut[e.from][e.to] = !s.cut[e.from][e.to]
	case eventEtcd:
		s.cut[e.from][mostExhausted] = !s.cut[e.from][mostExhausted]
	case eventKill:
		if *p == isKilled {
			*p = isRunning
		} else {
			*p = isKilled
		}
	case eventPause:
		switch *p {
		case isRunning:
			*p = isPaused
		case isPaused:
			*p = isRunning
		default:
			return s, false
		}
	case eventRestart:
		return s, *p == isRunning
	case eventReplace:
		s.newer[e.from] = !s.newer[e.from]
		return s, *p == isRunning
	case eventDefine:
		s.defined = !s.defined
	}
	return s, true
}

// step is the step that an event is on a stage.
func (s stage) step(e event, version func(newer bool) string) scenario.Step {
	name := scenario.ServerName(e.from)
	switch e.kind {
	case eventCut:
		return cutStep(name, scenario.ServerName(e.to), s.cut[e.from][e.to])
	case eventEtcd:
		return cutStep(name, fault.Etcd, s.cut[e.from][mostExhausted])
	case eventKill:
		if s.process[e.from] == isKilled {
			return scenario.Step{Action: scenario.Start, Server: name}
		}
		return scenario.Step{Action: scenario.Kill, Server: name}
	case eventPause:
		if s.process[e.from] == isPaused {
			return scenario.Step{Action: scenario.Resume, Server: name}
		}
		return scenario.Step{Action: scenario.Pause, Server: name}
	case eventRestart:
		return scenario.Step{Action: scenario.Restart, Server: name}
	case eventReplace:
		return scenario.Step{Action: scenario.Replace, Server: name, Version: version(!s.newer[e.from])}
	default:
		if s.defined {
			return scenario.Step{Action: scenario.Undefine, Definition: &definitions[0]}
		}
		return scenario.Step{Action: scenario.Define, Definition: &definitions[0]}
	}
}

func cutStep(from, to string, is bool) scenario.Step {
	label := from + "→" + to
	if is {
		return scenario.Step{Action: scenario.Heal, Label: label}
	}
	return scenario.Step{Action: scenario.Inject, Label: label, Fault: &fault.Fault{Kind: fault.Cut, From: from, To: to}}
}

// heal are the steps that heal every link and start every server again.
func (s stage) heal(servers int) []scenario.Step {
	var steps []scenario.Step
	for from := range servers {
		for to, is := range s.cut[from] {
			switch {
			case !is:
			case to == mostExhausted:
				steps = append(steps, cutStep(scenario.ServerName(from), fault.Etcd, true))
			default:
				steps = append(steps, cutStep(scenario.ServerName(from), scenario.ServerName(to), true))
			}
		}
	}
	for server := range servers {
		switch s.process[server] {
		case isPaused:
			steps = append(steps, s.step(event{eventPause, server, 0}, nil))
		case isKilled:
			steps = append(steps, s.step(event{eventKill, server, 0}, nil))
		}
	}
	return steps
}
