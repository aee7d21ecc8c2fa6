package invariant

import "github.com/skewproof/skewproof/internal/history"

// Grade says what demands an invariant.
type Grade string

// The grades.
const (
	GradeCore     Grade = "core"     // KEP-4020, or every use of a control plane
	GradeExtended Grade = "extended" // more than the KEP: judged and shown, counted only with --strict
)

// Outcome is the result of a verdict.
type Outcome string

// The outcomes.
const (
	OutcomePass         Outcome = "pass"
	OutcomeFail         Outcome = "fail"
	OutcomeInconclusive Outcome = "inconclusive" // nothing was proved; Verdict.Reason says why
)

// Verdict is what one invariant says about one history.
type Verdict struct {
	// Name is the name in the catalogue, such as "NoFalseNotFound".
	Name string `json:"name"`
	// Grade is "core" (the KEP demands it) or "extended" (beyond the KEP).
	Grade Grade `json:"grade"`
	// Outcome is "pass", "fail" or "inconclusive".
	Outcome Outcome `json:"verdict"`
	// About is true if the scenario tests this invariant: it must not stay inconclusive then.
	About bool `json:"about"`
	// Sentence says what must hold, for a non-programmer; Source is the clause that demands it.
	Sentence string `json:"sentence"`
	Source   string `json:"source,omitempty"`
	// Checked is how many operations were judged. A pass has at least one.
	Checked int `json:"checked"`
	// Unjudgeable is how many operations could not be judged because their ground truth is unknown.
	Unjudgeable int `json:"unjudgeable,omitempty"`
	// Overloaded is how many of the unjudgeable ones were wrong while the machine was overloaded.
	// If there are any, the outcome is not a pass.
	Overloaded int `json:"strained,omitempty"`
	// TakenOut is what the invariant did not rule on of the requests that had to cross, or may have
	// had to: first what no invariant ruled on, then the most frequent.
	TakenOut []TakenOut `json:"takenOut,omitempty"`
	// Unruled is how many of these no invariant ruled on, in classes of which they are a systematic
	// share: 5 % and at least 20. If there are any, the outcome is not a pass.
	Unruled int `json:"unruled,omitempty"`
	// Violations counts all violations; Evidence shows the first few kinds.
	Violations int `json:"violations"`
	// Facts are measured figures, in the order in which to show them.
	Facts []Fact `json:"facts,omitempty"`
	// Reason says why the outcome is inconclusive; it is empty otherwise.
	Reason string `json:"reason,omitempty"`
	// Evidence has one item for each signature, in the order of first occurrence, at most
	// MaxEvidence. Kinds is how many signatures there are.
	Kinds    int        `json:"kinds,omitempty"`
	Evidence []Evidence `json:"evidence,omitempty"`
}

// MaxEvidence bounds Verdict.Evidence: a defect that looks different each time must not fill a
// report. The rest is in the history.
const MaxEvidence = 64

// Fact is one measured figure, for people: {"converged after", "3.2s"}.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Evidence is all violations of one signature, shown by the smallest of them.
type Evidence struct {
	Signature Signature `json:"signature"`
	// Sentence describes the violation that is shown, for people.
	Sentence string `json:"sentence"`
	// Cause is what is wrong with it, in short: "404 though a could be reached".
	Cause string `json:"cause"`
	// Count is how many violations are in the group; First and Last are when they were seen.
	Count int          `json:"count"`
	First history.Time `json:"first"`
	Last  history.Time `json:"last"`
	// Asked is the server that was asked in the violation that is shown; Servers are all that were
	// asked in violations of the group, sorted.
	Asked   string   `json:"asked,omitempty"`
	Servers []string `json:"servers,omitempty"`
	// GVR and Subresource are what was asked for; zero if the violation is not about one resource.
	GVR         history.GVR `json:"gvr,omitzero"`
	Subresource string      `json:"subresource,omitempty"`
	// Resources names what the violations of the group are about, sorted, at most MaxListed of
	// them.
	Resources      []string `json:"resources,omitempty"`
	ResourcesTotal int      `json:"resourcesTotal,omitempty"`
	// Operations are the one that is wrong, or two that contradict each other. If a controller did
	// harm, they are its requests: the one with the answer that misled it, and the one that did harm.
	Operations []history.Operation `json:"operations,omitempty"`
	// Candidates are the servers that could have served it.
	Candidates []Candidate `json:"candidates,omitempty"`
	// Hops are the servers' own records of the first operation, in time order, and of the second one
	// if a controller did harm by it.
	Hops []history.Hop `json:"hops,omitempty"`
	// Difference is set if documents contradict each other.
	Difference *Difference `json:"difference,omitempty"`
	// Objects are those that a controller did harm to: the owners or the namespace first, then what
	// belongs to them.
	Objects []history.Object `json:"objects,omitempty"`
	// Lifecycle is set if a change of a process is the violation.
	Lifecycle *history.Lifecycle `json:"lifecycle,omitempty"`
}

// Candidate is a server that could have served a request.
type Candidate struct {
	Server  string `json:"server"`
	Version string `json:"version,omitempty"`
	// Since is since when it has served the resource without interruption.
	Since history.Time `json:"since"`
	// Reachable is true if no fault and no restart kept the asked server from reaching it.
	Reachable bool `json:"reachable"`
	// Obstacle says what did, for people: "fault 3, cut b→a since 12s". It is empty if Reachable.
	Obstacle string `json:"obstacle,omitempty"`
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
	// OnlyLeft and OnlyRight name resources, subresources and verbs, at most MaxListed each. The
	// totals count all.
	OnlyLeft       []string `json:"onlyLeft,omitempty"`
	OnlyRight      []string `json:"onlyRight,omitempty"`
	OnlyLeftTotal  int      `json:"onlyLeftTotal,omitempty"`
	OnlyRightTotal int      `json:"onlyRightTotal,omitempty"`
	// OrderOnly is true if both list the same in a different order.
	OrderOnly bool `json:"orderOnly,omitempty"`
}

// MaxListed bounds the lists of names in an Evidence and its Difference.
const MaxListed = 20
