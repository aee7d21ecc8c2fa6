// Package invariant judges a recorded run: pure functions of a history, each with a sentence that a non-programmer can
// review. It never talks to a cluster.
//
// A verdict is a pass, a fail with the smallest evidence that shows it, or inconclusive with the reason. A run that
// proves nothing never passes.
package invariant

// Invariant is one thing that must hold in every run.
type Invariant struct {
	Name  string
	Grade Grade
	// Outside is true when it can be judged of servers that are somebody else's ([history.Run].External): without logs of theirs, and without watching
	// their processes. False, as it is of an invariant that does not say, leaves it out there.
	Outside bool
	// Sentence says what must hold, for a non-programmer.
	Sentence string
	// Source is the clause that demands it.
	Source string

	judge func(*Facts) *tally
	// pressure names what must have been put on the subject for a pass to mean something, beside answered operations.
	pressure []pressure
}

// All returns the catalogue, in the order in which verdicts are shown.
func All() []Invariant {
	return []Invariant{
		noFalseNotFound,
		unavailableOnPeerFailure,
		trueNotFound,
		proxiedSucceed,
		noLoop,
		onlyTrustedPeers,
		identityPreserved,
		authorizedAlike,
		passedOnUnchanged,
		writesOnce,
		discoveryDeterministic,
		discoveryComplete,
		discoveryAccessible,
		noPeerIsLocal,
		listsAgree,
		answeredInKind,
		answeredInFull,
		watchesLast,
		openAPIDescribes,
		legacyListsOwn,
		groupVersionsDescribed,
		available,
		noCrash,
		converges,
	}
}
