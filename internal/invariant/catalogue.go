// Package invariant judges a recorded run. An invariant is a pure function of a history, with a
// sentence that a non-programmer can review. It never talks to a cluster.
//
// A verdict is a pass, a fail with the smallest evidence, or inconclusive with the reason. A run
// that proves nothing never passes.
package invariant

import "github.com/skewproof/skewproof/internal/history"

// Invariant is one rule that must hold in every run.
type Invariant struct {
	Name  string
	Grade Grade
	// Outside is true if the invariant can be judged for servers that skewproof did not start
	// ([history.Run].External), without their logs and without knowledge of their processes.
	Outside bool
	// Sentence says what must hold, for a non-programmer.
	Sentence string
	// Source is the clause that demands the rule.
	Source string

	judge func(*Facts) *tally
	// answers selects the answers for which a ruling covers the whole answer. For other answers, a
	// ruling covers only one aspect, and another aspect may be wrong. nil selects no answers.
	answers func(*history.Operation) bool
	// everyCrossing is true if every request that has to cross is the invariant's business. Such an
	// invariant reports the requests on which no invariant rules.
	everyCrossing bool
	// unknown says why the invariant may not rule on a request although the ground truth is known.
	unknown string
	// pressure is what the servers must have been exposed to, in addition to answered operations,
	// for a pass to count.
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
		auditedAlike,
		countedAlike,
		writesOnce,
		discoveryDeterministic,
		discoveryComplete,
		versionOrder,
		discoveryAccessible,
		noPeerIsLocal,
		listsAgree,
		objectsAgree,
		answeredInKind,
		answeredInFull,
		watchesLast,
		isolation,
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
		migrationsSucceed,
		settles,
		oneLeader,
	}
}
