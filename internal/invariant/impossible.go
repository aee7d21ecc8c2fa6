package invariant

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/history"
)

// impossible holds the records that no run can have made. Nothing is judged by them, and no
// invariant passes in a history that has any: whatever wrote them may have written others wrongly,
// too.
type impossible struct {
	records    int
	example    string // the first in the alphabet, whatever the order of the records is
	operations []*history.Operation
}

// found counts a record that cannot be.
func (i *impossible) found(format string, args ...any) {
	if words := fmt.Sprintf(format, args...); i.records == 0 || words < i.example {
		i.example = words
	}
	i.records++
}

// doubts says that the history has such records.
func (i *impossible) doubts() []string {
	if i.records == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the history has %s that cannot be, for example %s", counted(i.records, "record"), i.example)}
}

// clocks is how far apart the clock of the run and the clock in a server's log may be.
const clocks = time.Second

var (
	verbs = []string{
		"get", "list", "create", "update", "patch", "delete", "deletecollection", "watch", history.VerbDiscovery, history.VerbTable,
		history.VerbNoPeer, history.VerbLegacy, history.VerbOpenAPI,
	}
	bodies = []history.Body{
		history.BodyNone, history.BodyObject, history.BodyList, history.BodyTable, history.BodyStatus, history.BodyDiscovery, history.BodyEvents,
		history.BodyText,
	}
)

// cannotBe says why a run cannot have made the record of an operation. It returns "" if a run can.
func (f *Facts) cannotBe(op *history.Operation) string {
	gone := func() bool {
		w := window{op.Start, op.End}.widen(clocks)
		span, whole := f.byName[op.Server].line.during(w)
		return whole && span.phase == phaseDown && span.left != ""
	}
	switch {
	case op.ID == "":
		return "it has no Audit-ID"
	case op.Start < 0, f.end.Complete && op.Start > f.end.At:
		return "it was sent at " + clock(op.Start) + ", when the run did not send any"
	case op.Status == 0 && op.Failure == history.FailureNone:
		return "it has neither an answer nor a failure"
	case op.Status != 0 && op.Failure == history.FailureRefused:
		return "it has an answer although the connection was refused"
	case op.Status != 0 && (op.Status < 100 || op.Status > 599):
		return fmt.Sprintf("its status is %d", op.Status)
	case op.Missing != history.MissingNothing && op.Status != http.StatusNotFound:
		return fmt.Sprintf("it was answered %d, and that something does not exist", op.Status)
	case op.Items < 0 || op.Events < 0:
		return "it has a negative number of objects or events"
	case !slices.Contains(verbs, op.Verb):
		return fmt.Sprintf("its verb is %q", op.Verb)
	case !slices.Contains(bodies, op.Body):
		return fmt.Sprintf("its body is of the kind %q", op.Body)
	case op.Status != 0 && !f.run.External && gone():
		return "it was answered by a server that did not run"
	}
	return ""
}

// hopCannotBe says why no server can have made a record of an operation.
func (f *Facts) hopCannotBe(op *history.Operation, hop *history.Hop) string {
	switch {
	case f.byName[hop.Server] == nil:
		return fmt.Sprintf("the run has no server %q", hop.Server)
	case hop.End < hop.Start:
		return "it ends before it starts"
	case hop.Start < later(op.Start, -clocks):
		return "it starts at " + clock(hop.Start) + ", before the operation was sent"
	}
	return ""
}

// withoutLateHops removes the records of peers from an operation whose answer no peer can have
// given, because all of them began after it. One of several peers may begin late: one that was
// paused, while another one answered.
func (f *Facts) withoutLateHops(o *observation) {
	late := func(h history.Hop) bool { return atPeer(o.op, h) && h.Start > later(o.op.End, clocks) }
	inTime := func(h history.Hop) bool { return atPeer(o.op, h) && !late(h) }
	if !succeeded(o.op.Status) || o.op.Failure != history.FailureNone || !o.skewed() || slices.ContainsFunc(o.hops, inTime) {
		return
	}
	if i := slices.IndexFunc(o.hops, late); i >= 0 {
		h := o.hops[i]
		f.impossible.found("the record of %s on server %q: it starts at %s, after the operation was answered", o.op.ID, h.Server, clock(h.Start))
		o.hops = slices.DeleteFunc(o.hops, late)
	}
}

// possibleLives returns the records of the servers whose records no other record contradicts. Of
// the other servers it is unknown what their processes did.
func (f *Facts) possibleLives(all []history.Lifecycle) []history.Lifecycle {
	wrong := map[string]bool{}
	started := slices.ContainsFunc(all, func(l history.Lifecycle) bool { return l.State == history.StateStarting })
	states := map[process][]history.State{}
	for _, l := range all {
		of := process{l.Server, l.Incarnation}
		why := ""
		switch before := states[of]; {
		case started && len(before) == 0 && l.State != history.StateStarting:
			why = fmt.Sprintf("it is %s, and was not started", l.State)
		case l.State == history.StateReady && slices.Contains(before, history.StateReady):
			why = "it becomes ready twice"
		case l.State == history.StatePaused && !f.disturbedBy(l.At):
			why = "it is paused, and no step does that"
		case l.Reports != "" && semver.IsValid(l.Version) && semver.Compare("v"+l.Reports, semver.MajorMinor(l.Version)) > 0:
			why = "its version is " + l.Version + ", and it says that it emulates " + l.Reports + ", which is newer"
		}
		states[of] = append(states[of], l.State)
		if why != "" && !wrong[l.Server] {
			wrong[l.Server] = true
			f.impossible.found("%s (start %d) at %s: %s", l.Server, l.Incarnation, clock(l.At), why)
		}
	}
	return slices.DeleteFunc(all, func(l history.Lifecycle) bool { return wrong[l.Server] })
}

// disturbedBy reports whether a step that disturbs was being carried out, or may have been: the
// history may not record any.
func (f *Facts) disturbedBy(at history.Time) bool {
	return len(f.steps) == 0 || slices.ContainsFunc(f.steps, func(s history.Step) bool {
		return s.Disturbs && s.Start <= at && at <= later(s.End, clocks)
	})
}
