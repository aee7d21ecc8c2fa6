package reports

import (
	"time"

	"github.com/skewproof/skewproof/internal/invariant"
)

// ConformanceKind, with [APIVersion], identifies a conformance report. [ReadConformance] refuses
// others.
const ConformanceKind = "ConformanceReport"

// ControlDir is the name of the directory of control runs in that of a conformance suite.
const ControlDir = "control"

// ConformanceFile is the name of the file of a conformance report.
const ConformanceFile = "conformance.yaml"

// Result is what a scenario, a profile or a whole conformance run came to.
type Result string

// The results. Only ResultPassed is good news; the three others always come with a reason.
const (
	ResultPassed       Result = "passed"
	ResultFailed       Result = "failed"       // an invariant was violated
	ResultInconclusive Result = "inconclusive" // it was tried, and nothing was proved
	ResultSkipped      Result = "skipped"      // it was not tried, or nothing of the kind could be observed
)

// ConformanceReport is how one Mixed Version Proxy did in the catalogue, in one pair of versions.
type ConformanceReport struct {
	// APIVersion is always [APIVersion].
	APIVersion string `json:"apiVersion"`
	// Kind is always [ConformanceKind].
	Kind string `json:"kind"`
	// Metadata says when it was tested, by what, and which scenarios were chosen.
	Metadata ConformanceMetadata `json:"metadata"`
	// Product is what was tested.
	Product Product `json:"product"`
	// Result is that of the profile core, and of extended too if strict. It is "inconclusive" if the
	// negative control did not fail as it must, and never "skipped".
	Result Result `json:"result"`
	// Sentence says in one sentence what it came to, and why.
	Sentence string `json:"sentence"`
	// Profiles are "core" (what KEP-4020 demands) and "extended" (beyond it), in that order.
	Profiles []Profile `json:"profiles"`
	// Control says whether this very run could have failed.
	Control ConformanceControl `json:"control"`
	// Scenarios are those that were chosen, in the order of the catalogue.
	Scenarios []ConformanceScenario `json:"scenarios"`
	// Reproduce is the command line that repeats the conformance run; empty if it is not known.
	Reproduce string `json:"reproduce,omitempty"`
	// Environment lists what the run depended on, such as kernel and processors; one fact per entry.
	Environment []string `json:"environment,omitempty"`
}

// ConformanceMetadata says when it was tested, by what, and which scenarios were chosen.
type ConformanceMetadata struct {
	// StartedAt is the wall time of the start.
	StartedAt time.Time `json:"startedAt"`
	// DurationSeconds is how long everything took, the negative control included.
	DurationSeconds Seconds `json:"durationSeconds"`
	// SkewproofVersion is the version of the program that tested.
	SkewproofVersion string `json:"skewproofVersion"`
	// Labels is the expression that chose the scenarios, in Ginkgo's label language; empty: all of
	// them.
	Labels string `json:"labels,omitempty"`
	// Strict is true when the profile extended counts like core.
	Strict bool `json:"strict"`
	// Complete is false if the run was ended before every scenario had its turn; it never passes then.
	Complete bool `json:"complete"`
}

// Product is what was tested.
type Product struct {
	// Name is that of the Mixed Version Proxy: "kube-apiserver", "skewproof reference proxy".
	Name string `json:"name"`
	// Version is that of the product, where it has one of its own beside those of the kube-apiservers.
	Version string `json:"version,omitempty"`
	// URL is where to read about it.
	URL string `json:"url,omitempty"`
	// Backend is what the servers ran on: "local", "kind", "sim" or "existing" (they ran already).
	Backend string `json:"backend"`
	// Subject is the proxy as 'skewproof run --subject' names it; "external" on the backend
	// "existing".
	Subject string `json:"subject"`
	// From and To are the versions of the kube-apiservers; both are empty for servers that ran
	// already, whose versions are in the report of each scenario.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	Tested
}

// Profile is one part of what is demanded, with what the scenarios came to in it.
type Profile struct {
	// Name is "core" or "extended".
	Name invariant.Grade `json:"name"`
	// Result is "failed" if any scenario failed; else "inconclusive" if one was, if one was not run
	// because the suite was ended, or if none passed; else "passed".
	Result Result `json:"result"`
	// Passed, Failed, Inconclusive and Skipped count the scenarios with that result.
	Passed       int `json:"passed"`
	Failed       int `json:"failed"`
	Inconclusive int `json:"inconclusive"`
	Skipped      int `json:"skipped"`
}

// ConformanceScenario is what one scenario came to.
type ConformanceScenario struct {
	// Name is that of the catalogue. It is stable.
	Name string `json:"name"`
	// Family is the part of the catalogue that it belongs to.
	Family string `json:"family"`
	// Happens says in a sentence what is done to the control plane.
	Happens string `json:"happens"`
	// Core and Extended are the results by profile.
	Core     ProfileResult `json:"core"`
	Extended ProfileResult `json:"extended"`
	CarriedOut
}

// CarriedOut says where a run was carried out, and how to repeat it.
type CarriedOut struct {
	// DurationSeconds is how long it took; 0 if it was not carried out.
	DurationSeconds Seconds `json:"durationSeconds"`
	// Directory holds history, logs and the full report, relative to this file; empty if it was not
	// carried out. Page is the report for people; empty if the run left none.
	Directory string `json:"directory,omitempty"`
	Page      string `json:"page,omitempty"`
	// Reproduce is the command line that repeats this one run; empty if it is not for this backend.
	// For servers that run already it names their kubeconfig, which nobody else has.
	Reproduce string `json:"reproduce,omitempty"`
}

// ProfileResult is what one scenario came to in one profile.
type ProfileResult struct {
	// Result is "failed" if an invariant of the profile was violated; "inconclusive" if nothing could
	// be said about one that the scenario tests, the machine was overloaded, or the run was cut short;
	// "skipped" if the scenario was not run or showed nothing of the profile; else "passed".
	Result Result `json:"result"`
	// Reason says why it did not pass; empty if it did.
	Reason string `json:"reason,omitempty"`
	// Violated and Undecided name the invariants of the profile that were violated, or not decided, in
	// catalogue order. Undecided ones matter only if Reason names them.
	Violated  []string `json:"violated,omitempty"`
	Undecided []string `json:"undecided,omitempty"`
	// New counts the violations that no finding explains (docs/findings.md); Findings are the numbers
	// of those that explain others, sorted. OnlyKnown is true if they explain all.
	New       int   `json:"new,omitempty"`
	Findings  []int `json:"findings,omitempty"`
	OnlyKnown bool  `json:"onlyKnown,omitempty"`
}

// ConformanceControl is the proof that a run could have failed: scenarios on subjects that must
// fail.
type ConformanceControl struct {
	// Result is "passed" if every control run violated all that it must, "failed" if one did not,
	// "inconclusive" if one could not be carried out, "skipped" if there was none. Anything but
	// "passed" makes the whole report inconclusive.
	Result Result `json:"result"`
	// Reason says why the result is not "passed"; empty if it is.
	Reason string `json:"reason,omitempty"`
	// Runs are the control runs, in the order of the catalogue.
	Runs []ControlRun `json:"runs"`
	// Unproven are the scenarios that had no control run here, each with the reason.
	Unproven []Unproven `json:"unproven,omitempty"`
}

// ControlRun is a scenario on a subject on which it must fail.
type ControlRun struct {
	// Scenario is the name of the scenario.
	Scenario string `json:"scenario"`
	// Subject is what it must fail on, and Backend on what it was carried out.
	Subject string `json:"subject"`
	Backend string `json:"backend"`
	// MustViolate are the invariants that must be violated, all of them.
	MustViolate []string `json:"mustViolate"`
	// Result is "passed" if they were, "failed" if one was not, "inconclusive" if nothing could be
	// said about one or the run was cut short. Refused runs are among the unproven.
	Result Result `json:"result"`
	// Reason says why the result is not "passed".
	Reason string `json:"reason,omitempty"`
	// Violated are the core invariants that were violated.
	Violated []string `json:"violated,omitempty"`
	CarriedOut
}

// Unproven is a scenario of which this run does not show that it can fail.
type Unproven struct {
	// Scenario is its name.
	Scenario string `json:"scenario"`
	// Reason says why it had no control run, and where its proof is to be had.
	Reason string `json:"reason"`
}
