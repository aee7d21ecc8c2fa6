package invariant

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// isolation compares waits with waits, because a slow machine makes direct requests slow too.
var isolation = Invariant{
	Name:  "Isolation",
	Grade: GradeExtended,
	Sentence: "While one caller keeps many watches open that have to be passed on, no request of another caller to the same apiserver " +
		"fails, or waits longer than such requests wait at the apiservers that serve them.",
	Source: "beyond KEP-4020; kube-apiservers keep callers apart by API Priority and Fairness (KEP-1040), " +
		"and a proxy between them should too",
	judge:    judgeIsolation,
	pressure: []pressure{skewed, passedOn},
}

// extraWait is how much longer than the slowest direct request of its kind a request may take. A
// dial, a TLS handshake and a failover take less. directly is the number of direct requests of a
// kind that must be known before waits are compared with them.
const (
	extraWait = 3 * time.Second
	directly  = 20
)

// beside is what the requests of one verb cost at other servers that serve them, during a crowd.
type beside struct {
	requests  int
	slowest   history.Time
	throttled bool // one was answered 429
}

// disturbedRequest is a request that failed or waited beside a crowd.
type disturbedRequest struct {
	o            *observation
	wrong, cause string
}

// onlyPassedOn distinguishes, in a signature, a proxy that runs short of something from a server
// that does: beside the crowd, nothing like it went wrong with requests that the server serves
// itself.
const onlyPassedOn = ", only if passed on"

func judgeIsolation(f *Facts) *tally {
	t := newTimedTally(f)
	longest, slowest := history.Time(0), history.Time(0)
	for _, c := range f.crowds {
		if c.Watches == c.Failed {
			t.doubt("no watch of the crowd reached %s: %s", c.Server, c.Problem)
			continue
		}
		w := window{c.Start, c.End}
		direct := f.direct(c.Server, w)
		var disturbed []disturbedRequest
		own := map[string]bool{} // what went wrong with requests that the server serves itself
		for _, o := range f.observations {
			if o.op.Server != c.Server || !w.holds(window{o.op.Start, o.op.Start}) {
				continue
			}
			r, wrong, cause := f.ruleIsolated(o, direct[o.op.Verb])
			if r == rulingRight || r == rulingWrong {
				longest = max(longest, o.op.End-o.op.Start)
			}
			if r == rulingWrong {
				disturbed = append(disturbed, disturbedRequest{o, wrong, cause})
				own[wrong] = own[wrong] || o.local == claimYes
				continue
			}
			t.rule(o, r)
		}
		for _, d := range disturbed {
			t.rule(d.o, rulingWrong)
			wrong := d.wrong + " beside watches"
			if !own[d.wrong] {
				wrong += onlyPassedOn
			}
			cause := fmt.Sprintf("%s beside another caller's watches, %s", d.cause, f.reachability(d.o, *d.o.situation))
			t.violate(d.o, *d.o.situation, wrong, cause, answer(d.o.op))
		}
		for _, d := range direct {
			slowest = max(slowest, d.slowest)
		}
	}
	if len(f.crowds) > 0 {
		t.fact("longest wait of another caller", clock(longest))
		t.fact("longest wait of a direct request", clock(slowest))
	}
	return t
}

// direct returns, by verb, what requests to other servers for what they serve themselves cost in w.
func (f *Facts) direct(crowded string, w window) map[string]beside {
	all := map[string]beside{}
	for _, o := range f.observations {
		if o.op.Server == crowded || !w.holds(window{o.op.Start, o.op.Start}) || o.local != claimYes || !o.ready || o.op.Status == 0 ||
			o.op.Verb == "watch" {
			continue
		}
		b := all[o.op.Verb]
		b.requests++
		b.slowest = max(b.slowest, o.op.End-o.op.Start)
		b.throttled = b.throttled || o.op.Status == http.StatusTooManyRequests
		all[o.op.Verb] = b
	}
	return all
}

// unhindered reports whether no fault, not even a delay, was on the links on which the operation
// depends.
func (f *Facts) unhindered(o *observation) bool {
	free := func(s *server) bool {
		r, _ := f.reach(o.op.Server, s.name, o.window)
		return r == reachOpen && f.undisturbed(o.op.Server, s.name, o.window) && f.undisturbed(s.name, etcd, o.window)
	}
	return f.undisturbed(client, o.op.Server, o.window) && f.undisturbed(o.op.Server, etcd, o.window) &&
		(o.local == claimYes || !slices.ContainsFunc(f.handlers(o), func(s *server) bool { return !free(s) }))
}

// ruleIsolated rules on a request to the server that a crowd asks. Requests that fail for another
// reason than the crowd are left to [ruleAvailable]'s conditions. A watch lasts as long as it was
// asked to, so its wait says nothing.
func (f *Facts) ruleIsolated(o *observation, direct beside) (r ruling, wrong, cause string) {
	r, how := f.ruleAvailable(o)
	switch {
	case r == rulingWrong:
		return r, "failed", how
	case r != rulingRight:
		return r, "", ""
	case !f.unhindered(o):
		return rulingOut, "", ""
	case direct.requests < directly:
		return rulingUnknown, "", ""
	case o.op.Status == http.StatusTooManyRequests && !direct.throttled:
		return rulingWrong, "throttled", "throttled (429)"
	case o.op.Verb != "watch" && o.op.End-o.op.Start > direct.slowest+extraWait:
		return rulingWrong, "waited", fmt.Sprintf("waited %s, %s longer than the slowest direct request",
			clock(o.op.End-o.op.Start), clock(o.op.End-o.op.Start-direct.slowest))
	default:
		return rulingRight, "", ""
	}
}
