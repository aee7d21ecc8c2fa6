// Package reports turns a judged run into documents that a reviewer reads in a minute and that a
// program reads without guessing: a versioned report document, one HTML page, JUnit XML and a short
// summary for terminals. It does the same for the results of many runs: a conformance suite, a
// matrix of versions, a search and an ablation.
//
// [New] is pure: the same history and verdicts give the same report. Every rendering depends only
// on the report. So a saved report.json can be rendered again without the cluster and without the
// history.
package reports

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports/findings"
)

// APIVersion and Kind identify the report document. [Read] refuses any other document.
const (
	APIVersion = "skewproof/v1alpha1"
	Kind       = "RunReport"
)

// Seconds is a duration, or a time since the start of the run, in seconds with microsecond
// precision. The names of JSON fields of this type say so (Kubernetes API conventions, "Units").
type Seconds float64

// SecondsOf rounds a duration to the precision of a report.
func SecondsOf(d time.Duration) Seconds { return seconds(d) }

func seconds(d time.Duration) Seconds { return Seconds(math.Round(float64(d)/1e3) / 1e6) }

// RunReport is everything that a report shows about one run.
type RunReport struct {
	TypeMeta
	// Metadata says what was run, when and by which skewproof.
	Metadata Metadata `json:"metadata"`
	// Verdict is the verdict of all invariants together.
	Verdict Verdict `json:"verdict"`
	// Invariants are the verdicts one by one, in catalogue order.
	Invariants []Invariant `json:"invariants"`
	// Servers are the apiservers of the run, in the order in which the scenario names them.
	Servers []Server `json:"servers"`
	// Steps are the executed steps of the scenario, in time order.
	Steps []Step `json:"steps"`
	// Faults are the injected faults with their observed effects, in time order.
	Faults []Fault `json:"faults"`
	// Effects are the observed effects of unusual configurations, in time order.
	Effects []Effect `json:"effects,omitempty"`
	// Timeline shows states, faults, outcomes and violations over time, one lane per server.
	Timeline Timeline `json:"timeline"`
	// Pressure is how many requests of each class were sent, and how many the scenario demands.
	Pressure []invariant.Pressure `json:"pressure,omitempty"`
	// Counts are the operations by server, class and status, in that order.
	Counts []Count `json:"counts"`
	// Peers say who was asked and who answered, sorted by both.
	Peers []Peer `json:"peers,omitempty"`
	// Latencies are by class and way, in that order.
	Latencies []Latency `json:"latencies"`
	// Discovery is what the last merged discovery listed. It is absent if merged discovery was not
	// read.
	Discovery *MergedDiscovery `json:"discovery,omitempty"`
	// Findings describe in short the findings that the report names, by number.
	Findings []FindingNote `json:"findings,omitempty"`
	// Reproduce is the command line that repeats the run. It is empty if the backend gave none.
	Reproduce string `json:"reproduce"`
	// Environment is what the run depended on: kernel, processors, versions of tools. Each entry is
	// one fact.
	Environment []string `json:"environment,omitempty"`
}

// Metadata says what was run, when and by which skewproof.
type Metadata struct {
	// Scenario is the name of the scenario.
	Scenario string `json:"scenario"`
	// Sentence says what the scenario does, for a non-programmer.
	Sentence string `json:"sentence,omitempty"`
	// Backend says what the servers ran on: "sim", "local", "kind" or "existing" (they ran
	// already).
	Backend string `json:"backend"`
	// Subject says which Mixed Version Proxy was tested. "none" is the negative control.
	Subject string `json:"subject"`
	// From is the version with which servers start. To, if not empty, is the version to which they
	// are upgraded.
	From string `json:"from"`
	To   string `json:"to,omitempty"`
	// Seed determines the traffic and, if the backend allows it, the schedule.
	Seed uint64 `json:"seed"`
	// RequestsPerSecond is the requested rate over all servers. 0 means unknown.
	RequestsPerSecond float64 `json:"requestsPerSecond,omitempty"`
	// StartedAt is the wall time of the instant from which all Seconds of the report count.
	StartedAt time.Time `json:"startedAt"`
	// DurationSeconds is how long the run took.
	DurationSeconds Seconds `json:"durationSeconds"`
	// Operations is how many requests the history holds.
	Operations int `json:"operations"`
	// Complete is false if the history was cut short. Such a run never passes.
	Complete bool `json:"complete"`
	// Error says why the run ended early. It is empty if every step was carried out.
	Error string `json:"error,omitempty"`
	// Unjudged says why the run was not judged. It is empty if it was. A run without judgement is
	// inconclusive.
	Unjudged string `json:"unjudged,omitempty"`
	// SkewproofVersion is the version of the program that wrote the report.
	SkewproofVersion string `json:"skewproofVersion"`
	Tested
}

// Verdict is the verdict of all invariants together.
type Verdict struct {
	// Sentence says in one sentence what was found. It does not repeat the outcome.
	Sentence string `json:"sentence"`
	// Outcome is "fail", "inconclusive", "known" or "pass": see [RunReport.Standing].
	Outcome invariant.Outcome `json:"outcome"`
	// Strict is true if invariants beyond the KEP counted like the core ones.
	Strict bool `json:"strict"`
	// Failed and Inconclusive name the invariants with that outcome, in catalogue order.
	Failed       []string `json:"failed,omitempty"`
	Inconclusive []string `json:"inconclusive,omitempty"`
	// New counts the violations of deciding invariants that no finding explains. Findings are the
	// numbers of the findings that explain the other violations, sorted.
	New      int   `json:"new,omitempty"`
	Findings []int `json:"findings,omitempty"`
	// Missing are findings that may be fixed: this scenario shows them in released versions, and
	// this run tested for them but did not show them.
	Missing []Known `json:"missing,omitempty"`
	// Known is true if CI lets violations pass that findings explain (--known). It does not change
	// Outcome.
	Known bool `json:"known,omitempty"`
}

// Invariant is the verdict on one invariant.
type Invariant struct {
	invariant.Verdict
	// New counts the violations that no finding explains. Findings are the numbers of the findings
	// that explain the other violations, sorted.
	New      int   `json:"new,omitempty"`
	Findings []int `json:"findings,omitempty"`
	// Evidence has one item for each signature and shows its smallest violation. NEW violations
	// come first, then those that the fewest scenarios show. There may be fewer items than Kinds.
	Evidence []Evidence `json:"evidence,omitempty"`
}

// matters reports whether the run is inconclusive if this invariant, which counts, is inconclusive.
func (i Invariant) matters() bool { return i.About || i.Control || i.Overloaded > 0 || i.Unruled > 0 }

// Decides reports whether the invariant counts towards the verdict. Extended invariants count if
// strict.
func (r RunReport) Decides(i Invariant) bool {
	return i.Grade == invariant.GradeCore || r.Verdict.Strict
}

// Options is what a report needs in addition to the history and the verdicts.
type Options struct {
	// Version is the version of skewproof that writes the report.
	Version string
	// Strict makes extended invariants count like core ones. Otherwise they are shown but do not
	// count.
	Strict bool
	// Findings explain violations. If it is nil, no violation is called NEW or known. If it is
	// empty but not nil, all violations of a proxy are NEW.
	Findings findings.Catalogue
	// Known lets violations pass that findings explain: in JUnit, and in the exit code of the
	// command.
	Known bool
}

// New makes the report of a run from the facts of its history and the verdicts. It is pure: it
// reads no clock and does not change its arguments. Records may be in any order. The report has
// them in time order.
func New(facts *invariant.Facts, verdicts []invariant.Verdict, opts Options) RunReport {
	h := facts.History()
	end := runEnd(h)
	r := RunReport{
		TypeMeta: OfKind(Kind),
		Metadata: Metadata{
			Scenario: h.Run.Scenario, Sentence: h.Run.Sentence, Backend: h.Run.Backend, Subject: h.Run.Subject,
			From: h.Run.From, To: h.Run.To, Seed: h.Run.Seed, RequestsPerSecond: h.Run.QPS,
			StartedAt: h.Run.StartedAt.UTC(), DurationSeconds: seconds(end), Operations: len(h.Operations),
			Complete: h.End.Complete, Error: h.End.Error, Unjudged: h.Run.Unjudged, SkewproofVersion: opts.Version,
			Tested: Tested{Label: h.Run.Label, Binaries: h.Run.Binaries},
		},
		Invariants:  newInvariants(verdicts, opts.Findings, h.Run.Subject),
		Steps:       newSteps(h, end),
		Faults:      newFaults(h, end),
		Effects:     newEffects(h, end),
		Pressure:    facts.Pressures(),
		Counts:      newCounts(facts),
		Latencies:   newLatencies(facts),
		Discovery:   newMergedDiscovery(h),
		Reproduce:   h.Run.Reproduce,
		Environment: h.Run.Environment,
	}
	wrong := judgedWrong(verdicts, opts.Strict)
	r.Peers = newPeers(facts, wrong)
	r.Timeline = newTimeline(h, facts, end, wrong)
	r.Servers = newServers(h, r.Timeline.Lanes)
	r.Verdict = Verdict{Strict: opts.Strict, Known: opts.Known}
	r.Verdict.Outcome = r.Standing().Outcome()
	for _, i := range r.Invariants {
		switch i.Outcome {
		case invariant.OutcomeFail:
			r.Verdict.Failed = append(r.Verdict.Failed, i.Name)
		case invariant.OutcomeInconclusive:
			r.Verdict.Inconclusive = append(r.Verdict.Inconclusive, i.Name)
		}
	}
	r.surround(h, facts, wrong)
	r.account()
	r.miss(opts.Findings)
	r.Findings = newNotes(r, opts.Findings)
	r.Verdict.Sentence = headline(r)
	return r
}

// judgedWrong are the operations that an invariant that counts judged wrong.
func judgedWrong(verdicts []invariant.Verdict, strict bool) map[*history.Operation]bool {
	wrong := map[*history.Operation]bool{}
	for _, v := range verdicts {
		if v.Grade != invariant.GradeCore && !strict {
			continue
		}
		for _, o := range v.Wrong {
			wrong[o] = true
		}
	}
	return wrong
}

// inOrder returns the records in time order and does not change the list.
func inOrder[R any](records []R, at func(R) history.Time) []R {
	return slices.SortedStableFunc(slices.Values(records), func(a, b R) int { return cmp.Compare(at(a), at(b)) })
}

func newInvariants(verdicts []invariant.Verdict, known findings.Catalogue, subject string) []Invariant {
	out := []Invariant{}
	for _, v := range verdicts {
		i := Invariant{Verdict: v}
		i.Verdict.Evidence, i.Wrong = nil, nil
		for _, e := range v.Evidence {
			i.Evidence = append(i.Evidence, newEvidence(e))
		}
		i.explain(known, subject)
		out = append(out, i)
	}
	return out
}
