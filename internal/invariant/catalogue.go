// Package invariant judges a recorded run. An invariant is a pure function of a history, with a
// sentence that a non-programmer can review. It never talks to a cluster.
//
// A verdict is a pass, a fail with the smallest evidence, or inconclusive with the reason. A run
// that proves nothing never passes.
package invariant

import "github.com/skewproof/skewproof/internal/history"

// Invariant is one thing that must hold in every run.
type Invariant struct {
	Name  string
	Grade Grade
	// Outside is true if the invariant can be judged for servers that skewproof did not start
	// ([history.Run].External): without their logs and without knowledge of their processes.
	Outside bool
	// Sentence says what must hold, for a non-programmer.
	Sentence string
	// Source is the clause that demands it.
	Source string

	judge func(*Facts) *tally
	// answers selects the answers on which a ruling is one on the whole answer: what is right in one
	// respect may be wrong in another. nil: none.
	answers func(*history.Operation) bool
	// everyCrossing is true if every request that has to cross is the invariant's business. It tells
	// of those on which no invariant rules.
	everyCrossing bool
	// unknown says why the invariant may not rule on a request of which the ground truth is known.
	unknown string
	// pressure is what the subject must have been put under, beside answered operations, for a pass
	// to count.
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
		answeredAlike,
		passedOnUnchanged,
		writesOnce,
		discoveryDeterministic,
		discoveryComplete,
		versionOrder,
		discoveryAccessible,
		noPeerIsLocal,
		listsAgree,
		answeredInKind,
		answeredInFull,
		watchesLast,
		openAPIDescribes,
		legacyListsOwn,
		groupVersionsDescribed,
		configurationTakesEffect,
		available,
		noCrash,
		converges,
		noWrongfulDeletion,
		nothingLeftBehind,
		orphansCollected,
		deletionEnds,
		quotaFollows,
		noLostEvents,
		noFieldLost,
	}
}
