package invariant

import "fmt"

// proxiedSucceed is the one promise of KEP-4020 that allows exceptions, so that no single answer breaks it, and few answers say nothing of it.
var proxiedSucceed = Invariant{
	Name:  "ProxiedSucceed",
	Grade: GradeCore,
	Sentence: "Of the requests for what only other apiservers serve, more than 99 % are answered, and with no 5xx, while nothing changes and " +
		"nothing is wrong.",
	Source:  "KEP-4020, Service Level Objectives: of proxied resource requests more than 99 % result in a successful response (not 5XX) under normal conditions",
	Outside: true,
	judge:   judgeProxied,
}

const (
	// leastProxied is how many requests a percentage is made of. Fewer than a hundred would let a single failure break the promise.
	leastProxied = 150
	// mostFailed is how many in a hundred are too many.
	mostFailed = 1
)

// proxiedFailure is a request that failed, and how.
type proxiedFailure struct {
	*observation
	cause string
}

// judgeProxied takes from Available what can be held against the servers, and of that what is no matter of circumstances: what happened in quiet windows
// only, of resources only, and not what was denied or refused, which was never passed on.
func judgeProxied(f *Facts) *tally {
	t := f.timely()
	var failures []proxiedFailure
	all, strained := 0, 0
	for _, o := range f.observations {
		r, cause := f.ruleProxied(o)
		switch {
		case r == rulingUnknown:
			t.rule(r)
		case r != rulingRight && r != rulingWrong:
		case t.strains(o.op.End):
			if r == rulingWrong {
				t.rule(r)
				t.excused(o.op.End)
			}
			strained++
		default:
			t.rule(r)
			all++
			if r == rulingWrong {
				failures = append(failures, proxiedFailure{o, cause})
			}
		}
	}
	share := ratio(len(failures), all)
	switch {
	case all < leastProxied:
		t.doubt("too little: %d of at least %d requests in quiet times for what only other apiservers serve", all, leastProxied)
	case 100*len(failures) >= mostFailed*all:
		for _, o := range failures {
			class, why := circumstance(f.candidates(o.observation, o.situation), o.op.Server)
			t.violation(signature{o.op.Server, class, o.cause + " " + why}, o.op.End, o.resource.String(), func() Evidence {
				return f.show(o.observation, o.situation, answer(o.op)+", one of "+share+" that failed")
			})
		}
	}
	t.fact("proxied requests in quiet times that failed", share)
	if strained > 0 {
		t.fact("left out because the machine did not keep up", strained)
	}
	return t
}

func ratio(some, all int) string {
	if all == 0 {
		return "0 of 0"
	}
	return fmt.Sprintf("%d of %d (%.2f %%)", some, all, 100*float64(some)/float64(all))
}

// ruleProxied rules on one operation, and says what is wrong with it.
func (f *Facts) ruleProxied(o *observation) (ruling, string) {
	if o.resource == nil || o.op.GVR.Resource == "" || !o.skewed() || f.quietAt(o.window) == nil {
		return rulingNone, ""
	}
	if o.op.Status != 0 && !routed(o.op) || resourceNotFound(o.op) || f.proxyOff(o.op.Server, o.window) {
		return rulingNone, ""
	}
	return f.ruleAvailable(o)
}
