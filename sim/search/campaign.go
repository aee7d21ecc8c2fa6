package search

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/sim"
)

// CampaignVersion and CampaignKind identify the document. [ReadCampaign] refuses any other.
const (
	CampaignVersion = "skewproof/v1alpha1"
	CampaignKind    = "Campaign"
)

// Method is how the schedules of a campaign were chosen.
type Method string

// The methods.
const (
	MethodRandom Method = "random" // each drawn from its seed
	MethodAll    Method = "all"    // every schedule of a bounded scope
)

// Campaign is what a search came to: one shard of it, or all of them merged.
type Campaign struct {
	// APIVersion is always [CampaignVersion].
	APIVersion string `json:"apiVersion"`
	// Kind is always [CampaignKind].
	Kind string `json:"kind"`
	// SkewproofVersion is the version of the program that searched.
	SkewproofVersion string `json:"skewproofVersion"`
	// Spec is what was searched: a policy on a control plane of two versions.
	Spec Spec `json:"spec"`
	// Method is how the schedules were chosen.
	Method Method `json:"method"`
	// Scope is, where every schedule was run, what there was to choose from.
	Scope *Scope `json:"scope,omitempty"`
	// FirstSeed is the seed of the first schedule of all shards, and Wanted how many schedules they were to run; 0 if they were
	// to go on for a time.
	FirstSeed uint64 `json:"firstSeed"`
	Wanted    uint64 `json:"wanted"`
	// Shards are the parts that this document covers; Of is how many there are.
	Shards []Shard `json:"shards"`
	Of     int     `json:"of"`
	// Complete is false when a shard was ended before it had run what it was to run.
	Complete bool `json:"complete"`
	// Strict is true when extended invariants count towards the verdict like core ones.
	Strict bool `json:"strict"`

	// Schedules is how many were run.
	Schedules uint64 `json:"schedules"`
	// ElapsedSeconds is how long the slowest shard took, shrinking excepted; SchedulesPerSecond is what all shards ran in one second.
	ElapsedSeconds     float64 `json:"elapsedSeconds"`
	SchedulesPerSecond float64 `json:"schedulesPerSecond"`
	// Traces is how many different traces there were, and Shapes how many if times are left out of account: estimates, with a standard error of
	// [DistinctError]. The sketches are what they are estimated from, for merging.
	Traces       uint64   `json:"traces"`
	Shapes       uint64   `json:"shapes"`
	TracesSketch Distinct `json:"tracesSketch"`
	ShapesSketch Distinct `json:"shapesSketch"`
	// PassedOn is how many schedules had a request that was passed on to a peer. With none, nothing was tested.
	PassedOn uint64 `json:"passedOn"`
	// Reached are all interesting states with the schedules that came to them, 0 included.
	Reached []Reach `json:"reached"`
	// Invariants are all that there are, with the schedules that violated each.
	Invariants []InvariantCount `json:"invariants"`
	// Judged is how many histories were judged in full. The others' answers were looked at one by one as they came, and none
	// of them could have been objected to.
	Judged uint64 `json:"judged"`
	// Findings are the violations, one for each signature, what the KEP demands first.
	Findings []Finding `json:"findings"`
	// Checks are what was done to trust the search itself.
	Checks Checks `json:"checks"`
	// Troubles are what went wrong with schedules themselves.
	Troubles []Trouble `json:"troubles,omitempty"`
	// Verdict is what it all comes to.
	Verdict CampaignVerdict `json:"verdict"`
}

// Shard is a part of a campaign that one process searched.
type Shard struct {
	// Index counts from 1.
	Index int `json:"index"`
	// Schedules is how many it ran, in ElapsedSeconds, with so many Workers, on a Machine.
	Schedules      uint64  `json:"schedules"`
	ElapsedSeconds float64 `json:"elapsedSeconds"`
	Workers        int     `json:"workers"`
	Machine        string  `json:"machine"`
}

// Scope is what a campaign that runs every schedule chooses from.
type Scope struct {
	// Events is the most events of a schedule.
	Events int `json:"events"`
	// Alphabet are the events that there are. Not every one is possible in every state.
	Alphabet []string `json:"alphabet"`
	// Schedules is how many there are, by counting without making them; it is compared with how many were made.
	Schedules uint64 `json:"schedules"`
}

// Reach is an interesting state.
type Reach struct {
	// State is its name, and Schedules how many came to it.
	State     string `json:"state"`
	Schedules uint64 `json:"schedules"`
	// Impossible is why no schedule can come to it under this policy; empty if some can.
	Impossible string `json:"impossible,omitempty"`
}

// InvariantCount is an invariant with the number of schedules that violated it.
type InvariantCount struct {
	// Name is the name in the catalogue, Grade who asks for it, and Sentence what must hold.
	Name     string          `json:"name"`
	Grade    invariant.Grade `json:"grade"`
	Sentence string          `json:"sentence"`
	// Exercised is in how many of the histories that were judged in full it had something to judge. Of an invariant that had nothing in any of
	// them, the search says nothing.
	Exercised uint64 `json:"exercised"`
	// Violated is how many schedules violated it, whatever the cause, and Requests the same by what was peculiar about the request.
	Violated uint64         `json:"violated"`
	Requests []RequestCount `json:"requests"`
}

// RequestCount is how many schedules violated an invariant in a request of a kind. One that did in several kinds counts in each.
type RequestCount struct {
	// Asked is what is peculiar about the request; empty for plain ones.
	Asked Peculiarity `json:"asked,omitempty"`
	// Violated is how many schedules.
	Violated uint64 `json:"violated"`
}

// Finding is a violation.
type Finding struct {
	Signature
	// Schedules is how many showed it.
	Schedules uint64 `json:"schedules"`
	// Seed is the first that did.
	Seed uint64 `json:"seed"`
	// Sentence tells one in full: of the smallest schedule, if there is one.
	Sentence string `json:"sentence"`
	// Disturbances is how many steps of the smallest schedule harm or change the control plane, and Story is that schedule in words.
	Disturbances int      `json:"disturbances,omitempty"`
	Story        []string `json:"story,omitempty"`
	// File is the name of the repro file, and Repro its content; both empty if it was not written.
	File  string `json:"file,omitempty"`
	Repro *Repro `json:"repro,omitempty"`
	// Shrunk is false when there was no time to look for the smallest schedule.
	Shrunk bool `json:"shrunk"`
}

// Checks are what was done to trust the search itself.
type Checks struct {
	// Repeated is how many schedules were run twice, and Differed how many of them gave another trace.
	Repeated uint64 `json:"repeated"`
	Differed uint64 `json:"differed"`
	// Doubted is how many histories that needed no judging were judged all the same, and Wrong how many of them had a violation.
	Doubted uint64 `json:"doubted"`
	Wrong   uint64 `json:"wrong"`
	// FirstDiffered and FirstWrong are seeds; 0 if there is none.
	FirstDiffered uint64 `json:"firstDiffered,omitempty"`
	FirstWrong    uint64 `json:"firstWrong,omitempty"`
}

// Trouble is something that went wrong with schedules: one could not be run, or ended in a panic.
type Trouble struct {
	// Sentence says what.
	Sentence string `json:"sentence"`
	// Schedules is how many it happened to, the first with Seed.
	Schedules uint64 `json:"schedules"`
	Seed      uint64 `json:"seed"`
}

// CampaignVerdict is what a campaign comes to.
type CampaignVerdict struct {
	// Outcome is "pass", "fail" or "inconclusive".
	Outcome invariant.Outcome `json:"outcome"`
	// Sentence says why, in one sentence.
	Sentence string `json:"sentence"`
}

// fewestStates is how many of the interesting states a search must have come to for its silence to mean something.
const fewestStates = 8

// conclude works out the verdict from all the rest.
func (c *Campaign) conclude() {
	c.Verdict.Outcome, c.Verdict.Sentence = c.outcome()
}

func (c *Campaign) outcome() (invariant.Outcome, string) {
	var violated []string
	core := 0
	for _, f := range c.Findings {
		if f.Grade == invariant.GradeCore || c.Strict {
			core++
			if !slices.Contains(violated, f.Invariant) {
				violated = append(violated, f.Invariant)
			}
		}
	}
	states := c.States()
	switch {
	case core > 0:
		return invariant.OutcomeFail, fmt.Sprintf("%s violated, in %d different ways", strings.Join(violated, ", "), core)
	case c.Checks.Differed > 0:
		return invariant.OutcomeInconclusive, fmt.Sprintf("%d of %d schedules that were run twice gave two traces: the simulator cannot be trusted",
			c.Checks.Differed, c.Checks.Repeated)
	case c.Checks.Wrong > 0:
		return invariant.OutcomeInconclusive, fmt.Sprintf("%d of %d histories that seemed to need no judging had a violation: others may be missed",
			c.Checks.Wrong, c.Checks.Doubted)
	case len(c.Troubles) > 0:
		return invariant.OutcomeInconclusive, "some schedules could not be carried out: " + c.Troubles[0].Sentence
	case c.Schedules == 0:
		return invariant.OutcomeInconclusive, "nothing was run"
	case c.PassedOn == 0:
		return invariant.OutcomeInconclusive, fmt.Sprintf("in %d schedules no request was passed on to a peer", c.Schedules)
	case c.Method == MethodRandom && states < fewestStates:
		return invariant.OutcomeInconclusive, fmt.Sprintf("only %d of the interesting states were reached in %d schedules; want at least %d",
			states, c.Schedules, fewestStates)
	case !c.Complete:
		return invariant.OutcomeInconclusive, fmt.Sprintf("it was ended after %d schedules, without a violation until then", c.Schedules)
	case len(c.Shards) < c.Of:
		return invariant.OutcomePass, fmt.Sprintf("no violation in %d schedules of shard %d of %d", c.Schedules, c.Shards[0].Index, c.Of)
	default:
		return invariant.OutcomePass, fmt.Sprintf("no violation in %d schedules", c.Schedules)
	}
}

// States is how many of the interesting states were reached.
func (c *Campaign) States() int {
	n := 0
	for _, r := range c.Reached {
		if r.Schedules > 0 {
			n++
		}
	}
	return n
}

// PossibleStates is how many of them can be reached under the policy.
func (c *Campaign) PossibleStates() int {
	n := 0
	for _, r := range c.Reached {
		if r.Impossible == "" {
			n++
		}
	}
	return n
}

// story tells a case in words, a line each.
func story(c *sim.Case) (lines []string, disturbances int) {
	servers := make([]string, len(c.Servers))
	for i, s := range c.Servers {
		servers[i] = s.Name + " (" + s.Version + ")"
	}
	lines = append(lines, "servers "+strings.Join(servers, ", "))
	for i := 0; i <= len(c.Steps); i++ {
		if i > 0 {
			step := c.Steps[i-1]
			lines = append(lines, fmt.Sprintf("%d. %s", i, step.String()))
			if step.Disturbs() {
				disturbances++
			}
		}
		requests := slices.DeleteFunc(slices.Clone(c.Requests), func(r sim.Request) bool { return r.Step != i })
		slices.SortStableFunc(requests, func(a, b sim.Request) int { return int(a.After - b.After) })
		for _, r := range requests {
			lines = append(lines, "   "+asked(r))
		}
	}
	return lines, disturbances
}

// asked tells a request in words.
func asked(r sim.Request) string {
	what := r.GVR.String()
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	if what == "" {
		what = r.Path
	}
	s := fmt.Sprintf("%s later, ask %s to %s %s", r.After, r.Server, r.Verb, what)
	if r.After == 0 {
		s = fmt.Sprintf("at once, ask %s to %s %s", r.Server, r.Verb, what)
	}
	if r.User != "" {
		s += " as " + r.User
	}
	if r.Upgrade {
		s += ", by WebSocket"
	}
	if r.Forged != "" {
		s += ", with a forged header (" + r.Forged + ")"
	}
	return s
}

func secondsOf(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }
