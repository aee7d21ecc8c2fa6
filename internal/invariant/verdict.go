package invariant

import "github.com/skewproof/skewproof/internal/history"

// Grade says who asks for an invariant.
type Grade string

// The grades.
const (
	GradeCore     Grade = "core"     // KEP-4020 demands it, or nothing works without it
	GradeExtended Grade = "extended" // beyond the KEP: judged and shown, counted only when asked for
)

// Outcome is what a verdict comes to.
type Outcome string

// The outcomes.
const (
	OutcomePass         Outcome = "pass"
	OutcomeFail         Outcome = "fail"
	OutcomeInconclusive Outcome = "inconclusive" // nothing was proved either way; Verdict.Reason says why
)

// Verdict is what one invariant says of one history.
type Verdict struct {
	Invariant string  `json:"name"`
	Grade     Grade   `json:"grade"`
	Outcome   Outcome `json:"verdict"`
	// About is true when the scenario exists for this invariant: it may not stay inconclusive then.
	About bool `json:"about,omitempty"`
	// Sentence says what the invariant demands, for a non-programmer; Source is the clause that demands it.
	Sentence string `json:"sentence"`
	Source   string `json:"source,omitempty"`
	// Reason is why the outcome is inconclusive; empty otherwise.
	Reason string `json:"reason,omitempty"`
	// Checked is how many observations were judged. A pass has at least one.
	Checked int `json:"checked"`
	// Unjudgeable is how many observations would have been judged had their ground truth been known.
	Unjudgeable int `json:"unjudgeable,omitempty"`
	// Strained is how many of these were wrong, in a time in which the machine did not keep up. They are neither violations nor right, so that this
	// is no pass.
	Strained int `json:"strained,omitempty"`
	// Violations is the full count, of which Evidence shows the first few kinds.
	Violations int `json:"violations"`
	// Evidence is grouped by (asked server, resource, cause) in the order of the first occurrence, at most
	// MaxEvidence entries. Kinds is how many groups there were before that limit.
	Evidence []Evidence `json:"evidence,omitempty"`
	Kinds    int        `json:"kinds,omitempty"`
	// Facts are measured figures, in the order in which they should be shown.
	Facts []Fact `json:"facts,omitempty"`
}

// MaxEvidence bounds Verdict.Evidence: a reviewer reads a handful, the rest is in the history.
const MaxEvidence = 8

// Fact is one measured figure, ready to be shown: {"converged after", "3.2s"}.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Evidence is one group of like violations, shown by its first one.
type Evidence struct {
	// Sentence tells the first violation of the group in full, for people.
	Sentence string `json:"sentence"`
	// Cause is what the violations of the group have in common, such as "404 although b serves it and was cut off".
	Cause string `json:"cause"`
	// Count is how many violations are in the group; First and Last are when they were seen.
	Count int          `json:"count"`
	First history.Time `json:"first"`
	Last  history.Time `json:"last"`
	// Asked is the server that was asked; empty where no single one is to blame.
	Asked string `json:"asked,omitempty"`
	// GVR and Subresource are what was asked for; zero where the violation is about no single resource.
	GVR         history.GVR `json:"gvr,omitzero"`
	Subresource string      `json:"subresource,omitempty"`
	// Resources names all that the violations of the group were about, sorted, at most MaxListed; the total is whole.
	Resources      []string `json:"resources,omitempty"`
	ResourcesTotal int      `json:"resourcesTotal,omitempty"`
	// Operations are those that show the violation: one, or the two that contradict each other.
	Operations []history.Operation `json:"operations,omitempty"`
	// Candidates are the servers that could have served it, and why they could not be reached.
	Candidates []Candidate `json:"candidates,omitempty"`
	// Hops are the servers' own accounts of Operations, in time order.
	Hops []history.Hop `json:"hops,omitempty"`
	// Difference is set where documents contradict each other.
	Difference *Difference `json:"difference,omitempty"`
	// Lifecycle is set where a change of a process is the violation.
	Lifecycle *history.Lifecycle `json:"lifecycle,omitempty"`
}

// Candidate is a server that could have served a request.
type Candidate struct {
	Server  string `json:"server"`
	Version string `json:"version,omitempty"`
	// Since is when it began to serve the resource without a break.
	Since history.Time `json:"since"`
	// Reachable is true when nothing that the run did kept the asked server from reaching it.
	Reachable bool `json:"reachable"`
	// Obstacle says what did, for people: "fault 3 cut b→a since 12s"; empty when Reachable.
	Obstacle string `json:"obstacle,omitempty"`
}

// Difference says how two discovery documents differ.
type Difference struct {
	// Left and Right say whose documents they are: "merged /apis of b", "union of what a, b and c serve".
	Left  string `json:"left"`
	Right string `json:"right"`
	// LeftHash and RightHash are Document.Hash; empty for a union.
	LeftHash  string `json:"leftHash,omitempty"`
	RightHash string `json:"rightHash,omitempty"`
	LeftETag  string `json:"leftETag,omitempty"`
	RightETag string `json:"rightETag,omitempty"`
	// OnlyLeft and OnlyRight name resources, subresources and verbs, at most MaxListed each; the totals are whole.
	OnlyLeft       []string `json:"onlyLeft,omitempty"`
	OnlyRight      []string `json:"onlyRight,omitempty"`
	OnlyLeftTotal  int      `json:"onlyLeftTotal,omitempty"`
	OnlyRightTotal int      `json:"onlyRightTotal,omitempty"`
	// OrderOnly is true when both list the same in another order.
	OrderOnly bool `json:"orderOnly,omitempty"`
}

// MaxListed bounds the lists of names in an Evidence and its Difference.
const MaxListed = 20
