package invariant

import "github.com/skewproof/skewproof/internal/history"

// Grade says which source demands an invariant.
type Grade string

// These are all grades.
const (
	GradeCore     Grade = "core"     // demanded by KEP-4020, or by every use of a control plane
	GradeExtended Grade = "extended" // beyond the KEP: judged and shown, but counted only with --strict
)

// Outcome is the result of a verdict.
type Outcome string

// These are all outcomes.
const (
	OutcomePass         Outcome = "pass"
	OutcomeFail         Outcome = "fail"
	OutcomeInconclusive Outcome = "inconclusive" // nothing was proved; Verdict.Reason says why
	// OutcomeKnown is the outcome of a run, a suite, a table or a search in which findings explain
	// every violation that counts. A verdict on one invariant never has it: whether a violation is
	// known is not a fact of the history.
	OutcomeKnown Outcome = "known"
)

// Verdict is what one invariant says about one history.
type Verdict struct {
	// Name is the name in the catalogue, such as "NoFalseNotFound".
	Name string `json:"name"`
	// Grade is "core" (the KEP demands it) or "extended" (beyond the KEP).
	Grade Grade `json:"grade"`
	// Outcome is "pass", "fail" or "inconclusive".
	Outcome Outcome `json:"verdict"`
	// About is true if the scenario tests this invariant. Then the outcome must not be
	// inconclusive.
	About bool `json:"about"`
	// Control is true if the run is the negative control of its scenario and must violate this
	// invariant. If it does not, the run is inconclusive, whatever else it violates. Unshown is true
	// if the invariant was judged and held in such a run.
	Control bool `json:"control,omitempty"`
	Unshown bool `json:"unshown,omitempty"`
	// Sentence says what must hold, for a non-programmer. Source is the clause that demands it.
	Sentence string `json:"sentence"`
	Source   string `json:"source,omitempty"`
	// Checked is how many operations were judged. A pass needs at least one.
	Checked int `json:"checked"`
	// Unjudgeable is how many operations could not be judged because their ground truth is unknown.
	Unjudgeable int `json:"unjudgeable,omitempty"`
	// Overloaded is how many of the unjudgeable operations were wrong while the machine was
	// overloaded. If there are any, the outcome is not a pass.
	Overloaded int `json:"strained,omitempty"`
	// TakenOut lists requests that had to cross, or may have had to, and that the invariant did not
	// rule on. First come those that no invariant ruled on, then the most frequent.
	TakenOut []TakenOut `json:"takenOut,omitempty"`
	// Unruled is how many requests of TakenOut no invariant ruled on. It counts only the classes in
	// which they are a systematic share: 5 % and at least 20. If there are any, the outcome is not
	// a pass.
	Unruled int `json:"unruled,omitempty"`
	// Violations counts all violations; Evidence shows the first few kinds.
	Violations int `json:"violations"`
	// Facts are measured figures, in the order in which to show them.
	Facts []Fact `json:"facts,omitempty"`
	// Reason says why the outcome is inconclusive. It is empty otherwise.
	Reason string `json:"reason,omitempty"`
	// Evidence has one item for each signature, in the order of first occurrence, at most
	// MaxEvidence. Kinds is the number of signatures.
	Kinds    int        `json:"kinds,omitempty"`
	Evidence []Evidence `json:"evidence,omitempty"`
	// Wrong are the operations of the history that Violations counts. Violations that are not about
	// one operation are left out. It is not saved, because it can be as large as the history.
	Wrong []*history.Operation `json:"-"`
}

// MaxEvidence bounds Verdict.Evidence, because a defect that looks different each time must not
// fill a report. The history has the rest.
const MaxEvidence = 64

// Fact is one measured figure, for people: {"converged after", "3.2s"}.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Evidence is all violations of one signature. The smallest of them is shown.
type Evidence struct {
	Signature Signature `json:"signature"`
	// Sentence describes the violation that is shown, for people.
	Sentence string `json:"sentence"`
	// Cause says in short what is wrong: "404 though a could be reached".
	Cause string `json:"cause"`
	// Count is the number of violations in the group. First and Last are when they were seen.
	Count int          `json:"count"`
	First history.Time `json:"first"`
	Last  history.Time `json:"last"`
	// Asked is the server that was asked in the violation that is shown. Servers are all servers
	// that were asked in violations of the group, sorted.
	Asked   string   `json:"asked,omitempty"`
	Servers []string `json:"servers,omitempty"`
	// GVR and Subresource say what was requested. They are zero if the violation is not about one
	// resource.
	GVR         history.GVR `json:"gvr,omitzero"`
	Subresource string      `json:"subresource,omitempty"`
	// Resources names the resources of the violations in the group, sorted, at most MaxListed of
	// them. ResourcesTotal counts all of them.
	Resources      []string `json:"resources,omitempty"`
	ResourcesTotal int      `json:"resourcesTotal,omitempty"`
	// Operations is the wrong operation, or two operations that contradict each other. If a
	// controller did harm, they are its requests: the one with the answer that misled it, and the
	// one that did harm.
	Operations []history.Operation `json:"operations,omitempty"`
	// Candidates are the servers that could have served the request.
	Candidates []Candidate `json:"candidates,omitempty"`
	// Hops are the servers' own records of the first operation, in time order. If a controller did
	// harm, they also include the records of the second operation.
	Hops []history.Hop `json:"hops,omitempty"`
	// Difference is set if documents contradict each other.
	Difference *Difference `json:"difference,omitempty"`
	// Objects are the objects that a controller did harm to: the owners or the namespace first,
	// then what belongs to them.
	Objects []history.Object `json:"objects,omitempty"`
	// Misled is the answer that misled the controller, if it did harm and the history has the answer.
	Misled *Misled `json:"misled,omitempty"`
	// Lifecycle is set if a change of a process is the violation.
	Lifecycle *history.Lifecycle `json:"lifecycle,omitempty"`
}

// Candidate is a server that could have served a request.
type Candidate struct {
	Server  string `json:"server"`
	Version string `json:"version,omitempty"`
	// Since is the time since when it has served the resource without interruption.
	Since history.Time `json:"since"`
	// Reachable is true if no fault and no restart kept the asked server from reaching it.
	Reachable bool `json:"reachable"`
	// Obstacle describes for people what kept it: "fault 3, cut b→a since 12s". It is empty if
	// Reachable.
	Obstacle string `json:"obstacle,omitempty"`
	// Draining is true if it had been asked to stop, and served on.
	Draining bool `json:"draining,omitempty"`
}

// Difference is how two discovery documents differ.
type Difference struct {
	// Left and Right say what is compared: "/apis of b", "the union of what all servers serve".
	Left  string `json:"left"`
	Right string `json:"right"`
	// LeftHash and RightHash are Document.Hash; empty for a union.
	LeftHash  string `json:"leftHash,omitempty"`
	RightHash string `json:"rightHash,omitempty"`
	LeftETag  string `json:"leftETag,omitempty"`
	RightETag string `json:"rightETag,omitempty"`
	// OnlyLeft and OnlyRight name resources, subresources and verbs, at most MaxListed each.
	// OnlyLeftTotal and OnlyRightTotal count all.
	OnlyLeft       []string `json:"onlyLeft,omitempty"`
	OnlyRight      []string `json:"onlyRight,omitempty"`
	OnlyLeftTotal  int      `json:"onlyLeftTotal,omitempty"`
	OnlyRightTotal int      `json:"onlyRightTotal,omitempty"`
	// OrderOnly is true if both list the same in a different order.
	OrderOnly bool `json:"orderOnly,omitempty"`
}

// MaxListed bounds the lists of names in an Evidence and its Difference.
const MaxListed = 20
