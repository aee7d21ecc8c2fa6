package invariant

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var countedAlike = Invariant{
	Name:  "CountedAlike",
	Grade: GradeExtended,
	Sentence: "If an apiserver passes on requests that get an answer that is neither a 403 nor a 5xx, its metric apiserver_rerouted_request_total counts " +
		"at least as many requests for the same resource with the same status. Before Kubernetes 1.36 the metric does not count by resource, and " +
		"all resources are judged together.",
	Source: "beyond what KEP-4020 promises; KEP-4020, Monitoring Requirements: an operator determines with this metric whether the " +
		"feature is in use, and how many requests get errors",
	judge:    judgeCountedAlike,
	pressure: []pressure{skewed, passedOn},
}

// countedWithin is how long after the end of an answer a server may take to count it.
const countedWithin = time.Second

// indexCounted keeps the last numbers of each process.
func (f *Facts) indexCounted(h *history.History) {
	last := map[process]history.Counted{}
	for _, c := range h.Counted {
		p := process{c.Server, c.Incarnation}
		if before, ok := last[p]; !ok || c.At > before.At {
			last[p] = c
		}
	}
	f.counted = slices.SortedFunc(maps.Values(last), func(a, b history.Counted) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Incarnation, b.Incarnation))
	})
}

// series is what one server counts together. gvr is zero if it does not count by resource.
type series struct {
	gvr  history.GVR
	code string
}

// judgeCountedAlike demands no more than a lower bound, because servers also count requests that
// are no operations, such as those of controllers. It leaves out:
//   - watches and upgrades: a server may count them when they end, and not at all if the client
//     ends them;
//   - answers that were not complete, for the same reason;
//   - a 5xx: the asked server may have made it itself after the peer's answer;
//   - a 403, for the same reason: the asked server may refuse the user itself when the answer of
//     the peer is lost, rather than say 503;
//   - an answer that no peer has logged: the asked server made it itself.
func judgeCountedAlike(f *Facts) *tally {
	t := newTally(f)
	samples := 0
	for _, c := range f.counted {
		counts := map[series]int{}
		together := false
		for _, r := range c.Rerouted {
			counts[series{r.GVR, r.Code}] += r.Count
			together = together || r.Together
		}
		samples += len(counts)
		passed := map[series][]*observation{}
		for o := range f.identified() {
			if o.countable() && o.op.Server == c.Server && o.op.End+countedWithin <= c.At && o.handledBy() == c.Incarnation {
				s := series{o.op.GVR, strconv.Itoa(o.op.Status)}
				if together {
					s.gvr = history.GVR{}
				}
				passed[s] = append(passed[s], o)
			}
		}
		for _, s := range sortedSeries(passed) {
			t.ruleCounted(c, s, passed[s], counts)
		}
	}
	switch {
	case len(f.counted) == 0:
		t.doubt("no server's metrics were read")
	case t.verdict.Checked == 0:
		t.doubt("no operation was passed on by a server whose metrics were read later")
	}
	t.fact("servers whose metrics were read", len(f.counted))
	t.fact("series that they had counted", samples)
	return t
}

// ruleCounted counts the rulings on the operations of one series. If the server counted too few, it
// is unknown which of them it did not count. So the number of violations is right, and any of the
// operations may be shown.
func (t *tally) ruleCounted(c history.Counted, s series, passed []*observation, counts map[series]int) {
	for i, o := range passed {
		if i < counts[s] {
			t.rule(o, rulingRight)
			continue
		}
		t.rule(o, rulingWrong)
		wrong := "not counted"
		if othersCounted(counts, s) > 0 {
			wrong = "not counted with this status"
		}
		t.violation(t.breach(o, *o.situation, wrong, wrong), func() Evidence {
			e := t.facts.show(o, *o.situation, answer(o.op))
			resources := "all resources"
			if s.gvr.Resource != "" {
				resources = s.gvr.String()
			}
			e.Sentence = fmt.Sprintf("%s passed on %s for %s that were answered with %s. Its metric apiserver_rerouted_request_total counted "+
				"%d of them until %s, and %d with other statuses. One of them: %s.",
				c.Server, counted(len(passed), "request"), resources, s.code, counts[s], clock(c.At), othersCounted(counts, s), request(o.op))
			return e
		})
	}
}

// othersCounted is how many requests for a resource were counted with other statuses.
func othersCounted(counts map[series]int, s series) (sum int) {
	for other, n := range counts {
		if other.gvr == s.gvr && other.code != s.code {
			sum += n
		}
	}
	return sum
}

// countable reports whether the asked server must count the operation as passed on.
func (o *observation) countable() bool {
	answered := slices.ContainsFunc(o.hops, func(h history.Hop) bool { return atPeer(o.op, h) && h.Status == o.op.Status })
	status := o.op.Status
	return answered && o.op.GVR.Resource != "" && o.op.Verb != "watch" && !o.op.AsksForUpgrade() &&
		o.op.Failure == history.FailureNone && status != 0 && status != http.StatusForbidden && status < http.StatusInternalServerError
}

// handledBy is the incarnation of the asked server that handled the operation; 0 if it may have
// been more than one.
func (o *observation) handledBy() int {
	span, whole := o.asked.line.during(o.window)
	if !whole || span.phase != phaseReady {
		return 0
	}
	return span.incarnation
}

func sortedSeries(all map[series][]*observation) []series {
	return slices.SortedFunc(maps.Keys(all), func(a, b series) int {
		return cmp.Or(cmp.Compare(a.gvr.String(), b.gvr.String()), cmp.Compare(a.code, b.code))
	})
}
