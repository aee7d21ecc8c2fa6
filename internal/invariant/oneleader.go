package invariant

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// oneLeader judges the kube-controller-managers that run with leader election, by the Lease in etcd
// and by what each of them wrote.
var oneLeader = Invariant{
	Name:  "OneLeader",
	Grade: GradeExtended,
	Sentence: "Of several kube-controller-managers, only one acts at a time. A second one takes the Lease over only after the " +
		"first one must have given up, and the first one writes nothing after that. If the first one cannot renew the " +
		"Lease, another one leads within a bounded time.",
	Source: "Kubernetes' documentation of leases and of kube-controller-manager: a Lease lasts 15 s (--leader-elect-lease-duration), is " +
		"renewed every 2 s (--leader-elect-retry-period), and a leader that cannot renew it for 10 s gives up " +
		"(--leader-elect-renew-deadline)",
	judge: judgeOneLeader,
}

const (
	// leaderGivesUp is the time after which a holder that could not renew the Lease has ended.
	leaderGivesUp = 10 * time.Second
	// leaderBound is the longest time without a renewal. It is the duration of the Lease, plus two
	// retries with their jitter, plus the time that a restarted program needs.
	leaderBound = 30 * time.Second
	// leaderLate is how long a request may be in a server's log after its sender has given up.
	leaderLate = time.Second
)

// isLeaderLease reports whether an object is the Lease of kube-controller-managers.
func isLeaderLease(o history.Object) bool {
	return o.Kind == "Lease" && o.Namespace == "kube-system" && o.Name == "kube-controller-manager"
}

func judgeOneLeader(f *Facts) *tally {
	t := newTimedTally(f)
	var changes []history.Object
	for _, o := range f.objects.all {
		if isLeaderLease(o.first()) {
			changes = append(changes, o.changes...)
		}
	}
	if !slices.ContainsFunc(changes, func(c history.Object) bool { return candidateOf(c.Holder) != "" }) {
		return t // a kind cluster's own
	}
	takeovers, longest := 0, history.Time(0)
	for i, now := range changes {
		until, next := f.finish, history.Object{}
		if i+1 < len(changes) {
			next = changes[i+1]
			until = next.At
		}
		gap := until - now.At
		longest = max(longest, gap)
		if gap <= leaderBound {
			t.rule(nil, rulingRight)
		} else {
			t.rule(nil, rulingWrong)
			t.harmed(harm{
				wrong: "no leader", cause: "nobody renewed the Lease of the controllers for too long", at: later(now.At, leaderBound), object: now,
				graph: []history.Object{now},
				sentence: fmt.Sprintf(
					"%s renewed the Lease at %s (revision %d of etcd). Nobody renewed it again until %s, although at most %s may pass.",
					holder(now), clock(now.At), now.Revision, clock(until), clock(leaderBound)),
			})
		}
		if next.Holder == now.Holder || next.Holder == "" || now.Holder == "" {
			continue
		}
		takeovers++
		if gap >= leaderGivesUp {
			t.rule(nil, rulingRight)
		} else {
			t.rule(nil, rulingWrong)
			t.harmed(harm{
				wrong: "two leaders", cause: "the Lease of the controllers was taken over too early", at: next.At, object: next,
				graph: []history.Object{now, next},
				sentence: fmt.Sprintf(
					"%s took the Lease over at %s (revision %d of etcd), %s after %s had renewed it. A leader may act for %s after a renewal.",
					holder(next), clock(next.At), next.Revision, clock(gap), holder(now), clock(leaderGivesUp)),
			})
		}
	}
	t.actedWithoutLease(changes)
	t.fact("changes of the leader", takeovers)
	t.fact("longest time without a renewal", clock(longest))
	if takeovers == 0 {
		t.doubt("no kube-controller-manager took over from another one")
	}
	return t
}

func holder(lease history.Object) string {
	if lease.Holder == "" {
		return "nobody"
	}
	return lease.Holder
}

// candidateOf is the server whose client a holder is; "" if the identity does not say.
func candidateOf(identity string) string {
	host, _, _ := strings.Cut(identity, "_")
	server, ok := strings.CutPrefix(host, history.CandidatePrefix)
	if !ok {
		return ""
	}
	return server
}

// actedWithoutLease judges the writes of candidates: at that time, the Lease must not be held by a
// client of another server. The servers' logs say which server a request came to first.
func (t *tally) actedWithoutLease(changes []history.Object) {
	f := t.facts
	for i := range f.requests {
		q := &f.requests[i]
		if !workOfControllers(q) {
			continue
		}
		since, now, ok := heldAt(changes, q.Start)
		leader := candidateOf(now.Holder)
		switch {
		case !ok || leader == "":
			t.rule(nil, rulingNone)
		case leader == q.Server || q.Start <= later(since.At, leaderLate):
			t.rule(nil, rulingRight)
		default:
			t.rule(nil, rulingWrong)
			t.harmed(harm{
				wrong: "two leaders", cause: "controllers that do not lead wrote", at: q.Start, object: now, graph: []history.Object{since},
				sentence: fmt.Sprintf(
					"The controllers that are clients of %s sent %s %s at %s, as %s, while %s held the Lease since %s (revision %d of etcd).",
					q.Server, q.Verb, q.Path, clock(q.Start), q.User, now.Holder, clock(since.At), since.Revision),
			})
		}
	}
}

// heldAt returns the Lease as of a time, and the change with which its present holder got it. ok is
// false if the Lease did not exist yet.
func heldAt(changes []history.Object, at history.Time) (since, now history.Object, ok bool) {
	for _, change := range changes {
		if change.At > at {
			break
		}
		if !ok || change.Holder != now.Holder {
			since = change
		}
		now, ok = change, true
	}
	return since, now, ok
}

// workOfControllers reports whether a request is a write of controllers that only the leader sends,
// to the server whose clients they are. Requests for tokens, reviews, the Lease itself and events
// are sent by the others too.
func workOfControllers(q *history.Request) bool {
	switch q.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return false
	}
	switch q.GVR.Group {
	case "authentication.k8s.io", "authorization.k8s.io", "coordination.k8s.io", "events.k8s.io":
		return false
	}
	controllers := q.User == "system:kube-controller-manager" || strings.HasPrefix(q.User, "system:serviceaccount:kube-system:")
	return controllers && !q.Own && !q.Rerouted && succeeded(q.Status) && q.GVR.Resource != "events" && q.Subresource != "token"
}
