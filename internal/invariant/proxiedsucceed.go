package invariant

// proxiedSucceed is the only promise of KEP-4020 that allows exceptions. One failure does not break
// the promise, and a few responses prove nothing about it.
var proxiedSucceed = Invariant{
	Name:  "ProxiedSucceed",
	Grade: GradeCore,
	Sentence: "In steady state, more than 99 % of the requests that only other apiservers can serve get an answer that is not a " +
		"5xx.",
	Source: "KEP-4020, Service Level Objectives: of proxied resource requests more than 99 % result in a successful response (not 5XX) " +
		"under normal conditions",
	Outside: true,
	judge:   judgeProxied,
}

const (
	// leastProxied is the smallest number of requests for which a percentage is computed. With
	// fewer than a hundred requests, one failure would break the promise.
	leastProxied = 150
	// mostFailed is the number of failures in a hundred requests that is too many.
	mostFailed = 1
)

// judgeProxied applies the rule of Available in steady state, and only to resources. It leaves out
// requests that were denied or rejected, because servers never forward those.
func judgeProxied(f *Facts) *tally {
	t := newTimedTally(f)
	type failure struct {
		*observation
		cause string
	}
	var failures []failure
	all, overloaded := 0, 0
	for _, o := range f.observations {
		r, cause := f.ruleProxied(o)
		judged := r == rulingRight || r == rulingWrong
		switch {
		case judged && t.overloaded(o.op.End):
			overloaded++
			if r == rulingWrong {
				t.verdict.Unjudgeable++
				t.verdict.Overloaded++
			}
		case judged:
			t.rule(o, r)
			all++
			if r == rulingWrong {
				failures = append(failures, failure{o, cause})
			}
		case r == rulingUnknown, r == rulingOut:
			t.rule(o, r)
		}
	}
	share := ratio(len(failures), all)
	switch {
	case all < leastProxied:
		t.doubt("too little: %d of at least %d requests in steady state for what only other apiservers serve", all, leastProxied)
	case 100*len(failures) >= mostFailed*all:
		for _, o := range failures {
			t.violate(o.observation, *o.situation, "", o.cause+" "+f.reachability(o.observation, *o.situation),
				answer(o.op)+", one of "+share+" that failed")
		}
	}
	t.fact("proxied requests in steady state that failed", share)
	if overloaded > 0 {
		t.fact("left out because the machine was overloaded", overloaded)
	}
	return t
}

// ruleProxied rules on one operation and says how it failed.
func (f *Facts) ruleProxied(o *observation) (ruling, string) {
	if o.resource == nil || o.op.GVR.Resource == "" || !o.skewed() || f.steadyAt(o.window) == nil {
		return rulingNone, ""
	}
	if o.op.Status != 0 && !routed(o.op) || resourceNotFound(o.op) || f.proxyOff(o.op.Server, o.window) {
		return rulingNone, ""
	}
	return f.ruleAvailable(o)
}
