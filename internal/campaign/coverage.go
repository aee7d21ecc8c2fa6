package campaign

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
)

// situation is a fault that is on, and the last change before.
type situation struct{ fault, transition string }

// cell is a situation and a class of requests.
type cell struct {
	situation
	class string
}

// Coverage counts the requests in each cell.
type Coverage map[cell]uint64

// none is the fault or the transition where there is none.
const none = "none"

// The transitions.
const (
	upgrade   = "upgrade"
	downgrade = "downgrade"
)

// faultKinds and transitions are all of them, in the order in which they are shown.
var (
	faultKinds = func() []string {
		all := []string{none}
		for _, k := range fault.Kinds() {
			all = append(all, string(k))
		}
		return append(all, string(scenario.Kill), string(scenario.Pause), history.FaultBreakDiscovery, history.FaultMisconfiguration,
			history.FaultProxyOff)
	}()
	transitions = []string{
		none, string(scenario.Start), string(scenario.Stop), string(scenario.Resume), string(scenario.Restart), upgrade, downgrade,
		string(scenario.Define), string(scenario.Undefine), string(scenario.Heal), string(scenario.RestoreDiscovery),
	}
)

// axes are all values that a cell can have.
func axes() reports.CoverageAxes {
	return reports.CoverageAxes{Faults: faultKinds, Transitions: transitions, Classes: invariant.CrossingClasses()}
}

// lasting is for how long a transition matters to requests after it, as in signatures.
const lasting = 30 * time.Second

// transitionsOf names the transition of each step of a plan; "" for a step that is none.
func transitionsOf(p scenario.Plan) []string {
	versions := map[string]string{}
	for _, s := range p.Servers {
		versions[s.Name] = s.Version
	}
	all := make([]string, len(p.Steps))
	for i, s := range p.Steps {
		was, name := versions[s.Server], string(s.Action)
		if s.Version != "" && s.Server != "" {
			versions[s.Server] = s.Version
			switch {
			case semver.Compare(s.Version, was) > 0:
				name = upgrade
			case semver.Compare(s.Version, was) < 0:
				name = downgrade
			case s.Action == scenario.Replace:
				name = string(scenario.Restart)
			}
		}
		if slices.Contains(transitions[1:], name) {
			all[i] = name
		}
	}
	return all
}

// Add counts the requests of a schedule. f are the facts of the history of the plan.
func (c Coverage) Add(f *invariant.Facts, p scenario.Plan) {
	h := f.History()
	kinds := transitionsOf(p)
	for op, classes := range f.Crossings() {
		transition := none
		for _, s := range h.Steps { // in the order of time
			if s.Start <= op.Start && op.Start < s.End+lasting && s.Index < len(kinds) && kinds[s.Index] != "" {
				transition = kinds[s.Index]
			}
		}
		on := map[string]bool{}
		for _, f := range h.Faults {
			if f.Start <= op.End && op.Start <= f.End {
				on[f.Kind] = true
			}
		}
		if len(on) == 0 {
			on[none] = true
		}
		for kind := range on { // in any order: each is counted
			for _, class := range classes {
				c[cell{situation{kind, transition}, class}]++
			}
		}
	}
}

// promised are the situations that a plan leads to, if it goes as it should, and about how long it
// takes.
func promised(p scenario.Plan) (all map[situation]bool, takes time.Duration) {
	const start = 5 * time.Second // how long a start takes
	all = map[situation]bool{}
	on := map[string]string{} // the kinds of the faults that are on, by what ends them
	transition, until, now := none, time.Duration(0), time.Duration(0)
	pass := func(d time.Duration) {
		if d <= 0 {
			return
		}
		if now >= until {
			transition = none
		}
		now += d
		if len(on) == 0 {
			all[situation{none, transition}] = true
		}
		for _, kind := range on { // in any order
			all[situation{kind, transition}] = true
		}
	}
	kinds := transitionsOf(p)
	for i, s := range p.Steps {
		switch s.Action {
		case scenario.Soak, scenario.Outlast:
			pass(s.For)
		case scenario.Converge:
			pass(start)
		case scenario.Inject:
			on["label "+s.Label] = string(s.Fault.Kind)
		case scenario.Heal:
			delete(on, "label "+s.Label)
		case scenario.Kill, scenario.Pause:
			on["server "+s.Server] = string(s.Action)
		case scenario.BreakDiscovery:
			on[s.Path+" of "+s.Server] = string(s.Action)
		case scenario.RestoreDiscovery:
			delete(on, s.Path+" of "+s.Server)
		case scenario.Start, scenario.Resume:
			delete(on, "server "+s.Server)
		}
		if kinds[i] != "" {
			transition, until = kinds[i], now+lasting
			if slices.Contains([]scenario.Action{scenario.Start, scenario.Restart, scenario.Replace}, s.Action) {
				pass(start)
				until = now + lasting
			}
		}
	}
	return all, now
}

// Promise is how many cells that were not reached a plan leads to, for each second that it takes.
func (c Coverage) Promise(p scenario.Plan) float64 {
	const reset = 15 * time.Second // before every schedule
	situations, takes := promised(p)
	unreached := 0
	for at := range situations { // in any order: it is a sum
		for _, class := range invariant.CrossingClasses() {
			if c[cell{at, class}] == 0 {
				unreached++
			}
		}
	}
	return float64(unreached) / (takes + reset).Seconds()
}

// Report lists the cells that were reached, in the order of faults, transitions and classes.
func (c Coverage) Report() []reports.CoverageCell {
	all := make([]reports.CoverageCell, 0, len(c))
	for at, n := range c {
		all = append(all, reports.CoverageCell{Fault: at.fault, Transition: at.transition, Class: at.class, Requests: n})
	}
	classes := invariant.CrossingClasses()
	slices.SortFunc(all, func(a, b reports.CoverageCell) int {
		return cmp.Or(cmp.Compare(slices.Index(faultKinds, a.Fault), slices.Index(faultKinds, b.Fault)), strings.Compare(a.Fault, b.Fault),
			cmp.Compare(slices.Index(transitions, a.Transition), slices.Index(transitions, b.Transition)),
			cmp.Compare(slices.Index(classes, a.Class), slices.Index(classes, b.Class)))
	})
	return all
}
