package reports

import (
	"fmt"

	"github.com/skewproof/skewproof/internal/history"
)

// circumstances says what happened in a window of time: the faults that were on, and the processes that were replaced or restarted
// while they were; without any fault, the steps.
func circumstances(r RunReport, start, end Seconds) string {
	var faults []Fault
	since := start
	for _, f := range r.Faults {
		if f.overlaps(start, end) {
			faults = append(faults, f)
			since = min(since, f.StartSeconds)
		}
	}
	if clauses := faultClauses(faults); len(clauses) > 0 {
		for _, l := range r.Timeline.Lanes {
			if clause := processClause(l, since, end); clause != "" {
				clauses = appendNew(clauses, clause)
			}
		}
		return "while " + conjunction(clauses)
	}
	var steps []string
	before, within := "", true
	for _, s := range r.Steps {
		switch {
		case !s.Disturbs || s.StartSeconds > end:
		case s.EndSeconds >= start:
			steps = append(steps, "“"+s.Sentence+"”")
			within = within && (len(steps) > 1 || s.StartSeconds <= start)
		default:
			before = s.Sentence
		}
	}
	switch {
	case len(steps) > 0 && !within && before != "": // the window began before these steps, so they are not the cause
		return "after “" + before + "”"
	case len(steps) > 0 && !within:
		return "from the start on"
	case len(steps) > 3:
		return fmt.Sprintf("during %d steps, %s the first", len(steps), steps[0])
	case len(steps) > 0:
		return "during " + conjunction(steps)
	case before != "":
		return "after “" + before + "”"
	default:
		return "with nothing disturbing the cluster"
	}
}

// faultClauses say what faults did, those that did the same in one clause: "b→a and c→a were cut".
func faultClauses(faults []Fault) []string {
	type did struct{ one, many string }
	var order []did
	targets := map[did][]string{}
	for _, f := range faults {
		one, many := f.did()
		d := did{one, many}
		if targets[d] == nil {
			order = append(order, d)
		}
		target := f.Target()
		if f.Kind == "break-discovery" { // the link is that to its peers, whoever they are
			target = "a discovery document of " + f.To
		}
		targets[d] = appendNew(targets[d], target)
	}
	var clauses []string
	for _, d := range order {
		what := d.one
		if len(targets[d]) > 1 {
			what = d.many
		}
		clauses = append(clauses, conjunction(targets[d])+" "+what)
	}
	return clauses
}

// did is what the fault did, of one target and of several.
func (f Fault) did() (one, many string) {
	switch {
	case f.Kind == "cut":
		return "was cut", "were cut"
	case f.Kind == "kill":
		return "was killed", "were killed"
	case f.Kind == "pause":
		return "was paused", "were paused"
	case f.Kind == "break-discovery":
		return "failed for its peers", "failed for their peers"
	case f.Kind == history.FaultProxyOff && f.Server != "":
		return "had its proxy switched off", "had their proxies switched off"
	case (f.Kind == history.FaultMisconfiguration || f.Kind == history.FaultProxyOff) && f.Detail != "":
		if f.Server != "" {
			return "was misconfigured (" + f.Detail + ")", "were misconfigured (" + f.Detail + ")"
		}
		return "could not work (" + f.Detail + ")", "could not work (" + f.Detail + ")"
	default:
		return "had " + f.Kind, "had " + f.Kind
	}
}

// processClause says that a server's process was replaced in the window; "" if it was not.
func processClause(l Lane, start, end Seconds) string {
	for n, b := range l.States {
		if b.State != history.StateStarting || n == 0 || b.StartSeconds < start || b.StartSeconds > end {
			continue
		}
		if before := l.States[n-1].Version; before != b.Version {
			return l.Server + " was replaced by " + b.Version
		}
		return l.Server + " was restarted"
	}
	return ""
}
