package reports

import (
	"github.com/skewproof/skewproof/internal/invariant"
)

// ConformanceKind, with [APIVersion], identifies a conformance report. [ReadConformance] refuses
// any other document.
const ConformanceKind = "ConformanceReport"

// ControlDir is the name of the subdirectory that holds the control runs of a conformance suite.
const ControlDir = "control"

// ConformanceFile is the name of the file of a conformance report.
const ConformanceFile = "conformance.yaml"

// Result is the result of a scenario, a profile or a whole conformance run.
type Result string

// These are all results. All but ResultPassed have a reason.
const (
	ResultPassed       Result = "passed"
	ResultKnown        Result = "known"        // invariants were violated, and findings explain every violation
	ResultFailed       Result = "failed"       // an invariant was violated, and no finding explains all of it
	ResultInconclusive Result = "inconclusive" // it was tried, but nothing was proved
	ResultSkipped      Result = "skipped"      // it was not tried, or nothing of the kind could be observed
)

// ConformanceReport says how one Mixed Version Proxy passed the catalogue, in one pair of versions.
type ConformanceReport struct {
	TypeMeta
	// Metadata says when and by which program it was tested, and which scenarios were chosen.
	Metadata ConformanceMetadata `json:"metadata"`
	// Product is what was tested.
	Product Product `json:"product"`
	// Result is the result of the profile core, and also of extended if strict: see
	// [ConformanceReport.Standing]. It is never "skipped".
	Result Result `json:"result"`
	// Sentence says the result and its reason in one sentence.
	Sentence string `json:"sentence"`
	// Profiles are "core" (KEP-4020 demands it) and "extended" (beyond the KEP), in that order.
	Profiles []Profile `json:"profiles"`
	// Control says whether this very run could have failed.
	Control ConformanceControl `json:"control"`
	// Scenarios are the chosen scenarios, in the order of the catalogue.
	Scenarios []ConformanceScenario `json:"scenarios"`
	// Reproduce is the command line that repeats the conformance run; empty if it is not known.
	Reproduce string `json:"reproduce,omitempty"`
	// Environment lists what the run depended on, such as kernel and processors; one fact per
	// entry.
	Environment []string `json:"environment,omitempty"`
}

// ConformanceMetadata says when and by which program it was tested, and which scenarios were
// chosen.
type ConformanceMetadata struct {
	Made
	// Labels is the expression that chose the scenarios, in Ginkgo's label language. If it is
	// empty, all scenarios were chosen.
	Labels string `json:"labels,omitempty"`
	// Strict is true if the profile extended counts like core.
	Strict bool `json:"strict"`
	// Known is true if what findings explain passes in CI (--known). It changes no result.
	Known bool `json:"known,omitempty"`
	// Complete is false if the run was ended before every scenario was run. Such a run never
	// passes.
	Complete bool `json:"complete"`
}

// Product is the tested product.
type Product struct {
	// Name is the name of the Mixed Version Proxy: "kube-apiserver", "skewproof reference proxy".
	Name string `json:"name"`
	// Version is the product's own version, if it has one in addition to those of the
	// kube-apiservers.
	Version string `json:"version,omitempty"`
	// URL is where to read about it.
	URL string `json:"url,omitempty"`
	// Backend says what the servers ran on: "local", "kind", "sim" or "existing" (they ran
	// already).
	Backend string `json:"backend"`
	// Subject is the proxy as 'skewproof run --subject' names it. On the backend
	// "existing" it is "external" unless the servers or the user say that it is "builtin".
	Subject string `json:"subject"`
	// From and To are the versions of the kube-apiservers. Both are empty for servers that ran
	// already. Their versions are in the report of each scenario.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	Tested
}

// Profile is one part of the demands, with the results of the scenarios in that part.
type Profile struct {
	// Name is "core" or "extended".
	Name invariant.Grade `json:"name"`
	// Result is "failed" if any scenario failed. Otherwise it is "inconclusive" if a scenario was
	// inconclusive, if one was not run because the suite was ended, or if all were skipped.
	// Otherwise it is "known" if a scenario is, or else "passed".
	Result Result `json:"result"`
	// Passed, Known, Failed, Inconclusive and Skipped count the scenarios with that result.
	Passed       int `json:"passed"`
	Known        int `json:"known,omitempty"`
	Failed       int `json:"failed"`
	Inconclusive int `json:"inconclusive"`
	Skipped      int `json:"skipped"`
}

// ConformanceScenario is the result of one scenario.
type ConformanceScenario struct {
	// Name is the name in the catalogue. It is stable.
	Name string `json:"name"`
	// Family is the part of the catalogue that contains the scenario.
	Family string `json:"family"`
	// Happens says in a sentence what the scenario does to the control plane.
	Happens string `json:"happens"`
	// Core and Extended are the results by profile.
	Core     ProfileResult `json:"core"`
	Extended ProfileResult `json:"extended"`
	CarriedOut
}

// CarriedOut says where a run was carried out, and how to repeat it.
type CarriedOut struct {
	// DurationSeconds is how long the run took. It is 0 if there was no run.
	DurationSeconds Seconds `json:"durationSeconds"`
	// Directory holds history, logs and the full report, relative to this file. It is empty if
	// there was no run. Page is the report for people. It is empty if the run left none.
	Directory string `json:"directory,omitempty"`
	Page      string `json:"page,omitempty"`
	// Reproduce is the command line that repeats this one run. It is empty if the run is not for
	// this backend. For servers that ran already it names their kubeconfig, which only their owner
	// has.
	Reproduce string `json:"reproduce,omitempty"`
}

// ProfileResult is the result of one scenario in one profile.
type ProfileResult struct {
	// Result is "failed" if an invariant of the profile was violated, and findings do not explain
	// all of it. Otherwise it is "inconclusive" if nothing could be said about an invariant that the
	// scenario tests, if the machine was overloaded, or if the run was cut short. Otherwise it is
	// "known" if an invariant was violated, "skipped" if the scenario was not run or showed nothing
	// of the profile, or else "passed".
	Result Result `json:"result"`
	// Reason says why the scenario did not pass. It is empty if it passed.
	Reason string `json:"reason,omitempty"`
	// Held, Violated and Undecided name the invariants of the profile by their verdicts, in
	// catalogue order. They are empty if no run was judged. Undecided invariants matter only if
	// Reason names them.
	Held      []string `json:"held,omitempty"`
	Violated  []string `json:"violated,omitempty"`
	Undecided []string `json:"undecided,omitempty"`
	// New counts the violations that no finding explains (docs/findings.md). Findings are the
	// numbers of the findings that explain the others, sorted.
	New      int   `json:"new,omitempty"`
	Findings []int `json:"findings,omitempty"`
}

// ConformanceControl is the proof that a run could have failed: scenarios on subjects on which they
// must fail.
type ConformanceControl struct {
	// Result is "passed" if every control run violated all that it must violate. It is "failed" if
	// a control run did not, "inconclusive" if one could not be carried out, and "skipped" if there
	// was none. Any result other than "passed" makes the whole report inconclusive.
	Result Result `json:"result"`
	// Reason says why the result is not "passed". It is empty if the result is "passed".
	Reason string `json:"reason,omitempty"`
	// Runs are the control runs, in the order of the catalogue.
	Runs []ControlRun `json:"runs"`
	// Unproven are the scenarios without a control run here, each with the reason.
	Unproven []Unproven `json:"unproven,omitempty"`
}

// ControlRun is a scenario on a subject on which it must fail.
type ControlRun struct {
	// Scenario is the name of the scenario.
	Scenario string `json:"scenario"`
	// Subject is the subject on which the scenario must fail. Backend is where the control run ran.
	Subject string `json:"subject"`
	Backend string `json:"backend"`
	// MustViolate are the invariants that must all be violated.
	MustViolate []string `json:"mustViolate"`
	// Result is "passed" if all of them were violated, and "failed" if one was not. It is
	// "inconclusive" if nothing could be said about one, or if the run was cut short. Refused runs
	// are listed in Unproven.
	Result Result `json:"result"`
	// Reason says why the result is not "passed".
	Reason string `json:"reason,omitempty"`
	// Violated are the core invariants that were violated.
	Violated []string `json:"violated,omitempty"`
	CarriedOut
}

// Unproven is a scenario for which this run does not show that the scenario can fail.
type Unproven struct {
	// Scenario is the name of the scenario.
	Scenario string `json:"scenario"`
	// Reason says why the scenario had no control run, and where its proof can be found.
	Reason string `json:"reason"`
}
