package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

// ClassRow shows how a server answered requests of one class over time.
type ClassRow struct {
	// Class is what the requests were about: "whole resources", "subresources", "discovery" or
	// "upgrades".
	Class string `json:"class"`
	// Buckets are as in [Lane].
	Buckets []Bucket `json:"buckets"`
}

// Turn is a change from 503 to wrong answers of another status: the server forgot a peer that it
// could not reach.
type Turn struct {
	// Class is as in [ClassRow].
	Class string `json:"class"`
	// Unavailable counts the answers 503 before. They came from FromSeconds until LastSeconds.
	Unavailable int     `json:"unavailable"`
	FromSeconds Seconds `json:"fromSeconds"`
	LastSeconds Seconds `json:"lastSeconds"`
	// Wrong counts the wrong answers after, with that Status. They came from FirstSeconds until
	// UntilSeconds.
	Wrong        int     `json:"wrong"`
	Status       int     `json:"status"`
	FirstSeconds Seconds `json:"firstSeconds"`
	UntilSeconds Seconds `json:"untilSeconds"`
}

// rowClasses are the classes in the order in which they are shown.
var rowClasses = []string{"whole resources", "subresources", "discovery", "upgrades"}

// rowClass is the class of a request. An upgraded connection for a subresource is an upgrade.
func rowClass(o *history.Operation, m invariant.Mechanism) string {
	switch {
	case o.AsksForUpgrade():
		return rowClasses[3]
	case m == invariant.MechanismSubresource:
		return rowClasses[1]
	case o.GVR.Resource == "":
		return rowClasses[2]
	default:
		return rowClasses[0]
	}
}

// phase is a stretch in which a server gave either 503 or wrong answers of one status, and nothing
// else but right answers.
type phase struct {
	status, count int
	from, until   history.Time
}

// leastTurn is how many answers of each kind a turn has at least, because single answers may come
// in any order.
const leastTurn = 3

// turnOf finds the largest change from 503 to wrong answers.
func turnOf(class string, phases []phase) (Turn, bool) {
	best := Turn{}
	for n := 1; n < len(phases); n++ {
		before, after := phases[n-1], phases[n]
		if before.status != 503 || min(before.count, after.count) < leastTurn ||
			min(before.count, after.count) <= min(best.Unavailable, best.Wrong) {
			continue
		}
		best = Turn{
			Class: class, Unavailable: before.count, FromSeconds: seconds(before.from), LastSeconds: seconds(before.until),
			Wrong: after.count, Status: after.status, FirstSeconds: seconds(after.from), UntilSeconds: seconds(after.until),
		}
	}
	return best, best.Wrong > 0
}

// Turns says of every change from 503 to wrong answers when it was, and what happened then.
func (r RunReport) Turns() []string {
	var out []string
	for _, l := range r.Timeline.Lanes {
		for _, t := range l.Turns {
			out = append(out, fmt.Sprintf("%s, %s: 503 from %s to %s (%s), but from %s to %s %d, which is wrong (%s). The answer changed %s.",
				l.Server, t.Class, clock(t.FromSeconds), clock(t.LastSeconds), times(t.Unavailable), clock(t.FirstSeconds), clock(t.UntilSeconds),
				t.Status, times(t.Wrong),
				r.turnedWhen(t)))
		}
	}
	return out[:min(len(out), mostTurns)]
}

// turnedWhen says what happened when the answer changed: the faults, and the steps that disturbed
// the cluster just then.
func (r RunReport) turnedWhen(t Turn) string {
	words := circumstances(r, t.LastSeconds, t.FirstSeconds)
	for _, s := range r.Steps {
		if step := "“" + s.Sentence + "”"; s.Disturbs && s.StartSeconds <= t.FirstSeconds && s.EndSeconds >= t.LastSeconds &&
			!strings.Contains(words, step) {
			words += ", during " + step
		}
	}
	return words
}

// mostTurns is the maximum number of changes that the page names.
const mostTurns = 8

// answersOverTime counts the answers of one server by time and class.
type answersOverTime struct {
	width  time.Duration
	all    map[int64]*Bucket
	rows   map[string]map[int64]*Bucket
	phases map[string][]phase
}

func (a *answersOverTime) add(o *history.Operation, handled invariant.Handled, wrong bool) {
	slice, class := int64(o.End/a.width), rowClass(o, handled.Mechanism)
	if a.rows[class] == nil {
		a.rows[class] = map[int64]*Bucket{}
	}
	for _, in := range []map[int64]*Bucket{a.all, a.rows[class]} {
		if in[slice] == nil {
			in[slice] = &Bucket{StartSeconds: seconds(time.Duration(slice) * a.width)}
		}
		in[slice].add(o, handled.Class, wrong)
	}
	if o.Status != 503 && (!wrong || o.Status == 0) {
		return
	}
	phases := a.phases[class]
	if n := len(phases); n == 0 || phases[n-1].status != o.Status {
		phases = append(phases, phase{status: o.Status, from: o.Start})
	}
	last := &phases[len(phases)-1]
	last.count, last.until = last.count+1, o.Start
	a.phases[class] = phases
}

// into writes the counts into the lane, in time order.
func (a *answersOverTime) into(l *Lane) {
	l.Buckets = inTime(a.all)
	for _, class := range rowClasses {
		if buckets := inTime(a.rows[class]); len(buckets) > 0 {
			l.Rows = append(l.Rows, ClassRow{Class: class, Buckets: buckets})
		}
		if t, ok := turnOf(class, a.phases[class]); ok {
			l.Turns = append(l.Turns, t)
		}
	}
}

// inTime returns the buckets that are not empty, in time order.
func inTime(buckets map[int64]*Bucket) []Bucket {
	var out []Bucket
	for _, b := range buckets {
		if b.Total() > 0 {
			out = append(out, *b)
		}
	}
	slices.SortFunc(out, func(a, b Bucket) int { return cmp.Compare(a.StartSeconds, b.StartSeconds) })
	return out
}

func countAnswers(facts *invariant.Facts, width time.Duration, wrong map[*history.Operation]bool) map[string]*answersOverTime {
	out := map[string]*answersOverTime{}
	for o, handled := range facts.Handled() {
		a := out[o.Server]
		if a == nil {
			a = &answersOverTime{width, map[int64]*Bucket{}, map[string]map[int64]*Bucket{}, map[string][]phase{}}
			out[o.Server] = a
		}
		a.add(o, handled, wrong[o])
	}
	return out
}
