package reports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/shell"
)

// CampaignKind identifies a campaign, together with [APIVersion]. [ReadCampaign] refuses any other.
const CampaignKind = "Campaign"

// The names of the files of a campaign. Beside them are the repro files of its findings.
const (
	CampaignHTML = "campaign.html"
	CampaignJSON = "campaign.json"
)

// Method is how the schedules of a campaign were chosen.
type Method string

// The methods.
const (
	MethodRandom Method = "random" // each drawn from its seed
	MethodAll    Method = "all"    // every schedule of a bounded scope
)

// Campaign is what a search found: one shard of it, or all of them merged.
type Campaign struct {
	// APIVersion is always [APIVersion].
	APIVersion string `json:"apiVersion"`
	// Kind is always [CampaignKind].
	Kind string `json:"kind"`
	// SkewproofVersion is the version of the program that searched.
	SkewproofVersion string `json:"skewproofVersion"`
	// Spec is what was searched.
	Spec SearchSpec `json:"spec"`
	// Method is how the schedules were chosen.
	Method Method `json:"method"`
	// Scope is what a campaign that runs every schedule chose from.
	Scope *Scope `json:"scope,omitempty"`
	// FirstSeed is the seed of the first schedule of all shards. Wanted is how many schedules they
	// were to run; 0 if they were to run for a time.
	FirstSeed uint64 `json:"firstSeed"`
	Wanted    uint64 `json:"wanted"`
	// Shards are the parts that this document covers; Of is how many there are.
	Shards []Shard `json:"shards"`
	Of     int     `json:"of"`
	// Complete is false when a shard was ended before it had run all its schedules.
	Complete bool `json:"complete"`
	// Strict is true when extended invariants count towards the verdict like core ones.
	Strict bool `json:"strict"`

	// Schedules is how many were run.
	Schedules uint64 `json:"schedules"`
	// ElapsedSeconds is how long the slowest shard took, without shrinking. SchedulesPerSecond is over
	// all shards.
	ElapsedSeconds     float64 `json:"elapsedSeconds"`
	SchedulesPerSecond float64 `json:"schedulesPerSecond"`
	// Traces is how many different traces there were, and Shapes how many if times are ignored:
	// estimates, with the error [DistinctError], from TracesSketch and ShapesSketch, which can be
	// merged.
	Traces       uint64 `json:"traces"`
	Shapes       uint64 `json:"shapes"`
	TracesSketch []byte `json:"tracesSketch"`
	ShapesSketch []byte `json:"shapesSketch"`
	// PassedOn is how many schedules had a request that was forwarded to a peer. 0: nothing was
	// tested.
	PassedOn uint64 `json:"passedOn"`
	// Reached are all interesting states with the schedules that reached them, 0 included.
	Reached []Reach `json:"reached"`
	// Invariants are all that there are, with the schedules that violated each.
	Invariants []InvariantCount `json:"invariants"`
	// Judged is how many histories were judged in full. In the others no answer could violate
	// anything.
	Judged uint64 `json:"judged"`
	// Findings are the violations, one for each kind, what the KEP demands first.
	Findings []CampaignFinding `json:"findings"`
	// Checks are what the search did to check itself.
	Checks SelfChecks `json:"checks"`
	// Troubles are schedules that could not be run.
	Troubles []Trouble `json:"troubles,omitempty"`
	// Verdict is what follows from all of it.
	Verdict CampaignVerdict `json:"verdict"`
}

// DistinctError is the relative standard error of Traces and Shapes: HyperLogLog, 2^14 registers.
const DistinctError = 1.04 / 128

// SearchSpec says what is searched: a policy, with changes, on a control plane of two versions.
type SearchSpec struct {
	// Policy is the name of a preset, or "none" for the feature switched off.
	Policy string `json:"policy"`
	// Changes are switches of the policy that are set otherwise: "Knowledge.KeepLastGood=true".
	Changes []string `json:"changes,omitempty"`
	// From and To are the versions whose recorded documents the servers serve.
	From string `json:"from"`
	To   string `json:"to"`
	// Servers is how many there are.
	Servers int `json:"servers"`
	// Resources is how many of the resources that differ most are served; 0 is all that both serve.
	Resources int `json:"resources"`
	// Requests is how many requests a random schedule has; 0 is the default.
	Requests int `json:"requests,omitempty"`
}

// String is the policy with its changes.
func (s SearchSpec) String() string {
	return strings.Join(append([]string{s.Policy}, s.Changes...), ", ")
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
	// Schedules is how many there are.
	Schedules uint64 `json:"schedules"`
}

// Reach is an interesting state.
type Reach struct {
	// State is its name, and Schedules how many reached it.
	State     string `json:"state"`
	Schedules uint64 `json:"schedules"`
	// Impossible is why no schedule can reach it under this policy; empty if some can.
	Impossible string `json:"impossible,omitempty"`
}

// InvariantCount is an invariant with the number of schedules that violated it.
type InvariantCount struct {
	// Name is the name in the catalogue, Grade who asks for it, and Sentence what must hold.
	Name     string          `json:"name"`
	Grade    invariant.Grade `json:"grade"`
	Sentence string          `json:"sentence"`
	// Exercised is in how many fully judged histories it had something to judge. 0: nothing is known.
	Exercised uint64 `json:"exercised"`
	// Violated is how many schedules violated it; Requests is the same by the kind of request.
	Violated uint64         `json:"violated"`
	Requests []RequestCount `json:"requests"`
}

// RequestCount is how many schedules violated an invariant in a request of one kind. A schedule may
// count in several kinds.
type RequestCount struct {
	// Asked is the kind of the request; empty for plain ones.
	Asked RequestKind `json:"asked,omitempty"`
	// Violated is how many schedules.
	Violated uint64 `json:"violated"`
}

// RequestKind is what sets a request apart from plain ones.
type RequestKind string

// The kinds of requests.
const (
	PlainRequest       RequestKind = ""
	SubresourceRequest RequestKind = "asked for a subresource"
	ForgedRequest      RequestKind = "asked with a forged hop header"
)

// RequestKinds are all kinds, in the order in which they are shown.
var RequestKinds = [...]RequestKind{PlainRequest, SubresourceRequest, ForgedRequest}

// ViolationKind is what violations have in common that a search shows once: the finding that
// explains them, or what they are without their circumstances.
type ViolationKind struct {
	// Finding is the number of the finding, and Title what it is called; 0 if the violation is NEW.
	Finding int    `json:"finding,omitempty"`
	Title   string `json:"title,omitempty"`
	// Signature is that of a NEW violation, without its circumstances; zero if it is known.
	Signature invariant.Signature `json:"signature,omitzero"`
}

// String is the kind in a line.
func (k ViolationKind) String() string {
	if k.Finding != 0 {
		return fmt.Sprintf("known (finding %d): %s", k.Finding, k.Title)
	}
	return "NEW: " + k.Signature.String()
}

// Compare orders what a search found: what the KEP demands first, then what is NEW, then by
// finding.
func (f CampaignFinding) Compare(o CampaignFinding) int {
	return cmp.Or(cmp.Compare(f.Grade, o.Grade), cmp.Compare(f.Finding, o.Finding), f.ViolationKind.Signature.Compare(o.ViolationKind.Signature))
}

// CampaignFinding is a violation that a search found.
type CampaignFinding struct {
	ViolationKind
	// Invariant is what the example violates, and Grade who asks for it. A finding may violate others
	// as well.
	Invariant string          `json:"invariant"`
	Grade     invariant.Grade `json:"grade"`
	// Schedules is how many showed it.
	Schedules uint64 `json:"schedules"`
	// Seed is the first that did.
	Seed uint64 `json:"seed"`
	// Sentence tells one in full: of the smallest schedule, if there is one.
	Sentence string `json:"sentence"`
	// Disturbances is how many steps of the smallest schedule disturb; Story is the schedule in words.
	Disturbances int      `json:"disturbances,omitempty"`
	Story        []string `json:"story,omitempty"`
	// File is the name of the repro file, and Repro its content; both empty if it was not written.
	File  string          `json:"file,omitempty"`
	Repro json.RawMessage `json:"repro,omitempty"`
	// Shrunk is false when there was no time to look for the smallest schedule.
	Shrunk bool `json:"shrunk"`
}

// SelfChecks are what a search does to check itself.
type SelfChecks struct {
	// Repeated is how many schedules were run twice, and Differed how many of them gave another trace.
	Repeated uint64 `json:"repeated"`
	Differed uint64 `json:"differed"`
	// Doubted is how many histories were judged although they seemed to need no judging, and Wrong how
	// many of them had a violation.
	Doubted uint64 `json:"doubted"`
	Wrong   uint64 `json:"wrong"`
	// FirstDiffered and FirstWrong are seeds; 0 if there is none.
	FirstDiffered uint64 `json:"firstDiffered,omitempty"`
	FirstWrong    uint64 `json:"firstWrong,omitempty"`
}

// Trouble is why schedules could not be run, or ended in a panic.
type Trouble struct {
	// Sentence says what went wrong.
	Sentence string `json:"sentence"`
	// Schedules is how many it happened to, the first with Seed.
	Schedules uint64 `json:"schedules"`
	Seed      uint64 `json:"seed"`
}

// CampaignVerdict is the verdict on a campaign.
type CampaignVerdict struct {
	// Outcome is "pass", "fail" or "inconclusive".
	Outcome invariant.Outcome `json:"outcome"`
	// Sentence says why, in one sentence.
	Sentence string `json:"sentence"`
}

// FewestStates is how many of the interesting states a random search must have reached to pass.
const FewestStates = 8

// Conclude fills in the verdict, which follows from all other fields.
func (c *Campaign) Conclude() { c.Verdict = c.conclusion() }

func (c *Campaign) conclusion() CampaignVerdict {
	inconclusive := func(format string, args ...any) CampaignVerdict {
		return CampaignVerdict{invariant.OutcomeInconclusive, fmt.Sprintf(format, args...)}
	}
	var violated []string
	core := 0
	for _, f := range c.Findings {
		if c.Decides(f.Grade) {
			core++
			violated = appendNew(violated, f.Invariant)
		}
	}
	states := c.States()
	switch {
	case core > 0:
		return CampaignVerdict{invariant.OutcomeFail, fmt.Sprintf("%s violated, in %d different ways", strings.Join(violated, ", "), core)}
	case c.Checks.Differed > 0:
		return inconclusive("%d of %d schedules that were run twice gave two traces: the simulator cannot be trusted", c.Checks.Differed, c.Checks.Repeated)
	case c.Checks.Wrong > 0:
		return inconclusive("%d of %d histories that seemed to need no judging had a violation: others may be missed", c.Checks.Wrong, c.Checks.Doubted)
	case len(c.Troubles) > 0:
		return inconclusive("some schedules could not be carried out: %s", c.Troubles[0].Sentence)
	case c.Schedules == 0:
		return inconclusive("nothing was run")
	case c.PassedOn == 0:
		return inconclusive("in %d schedules no request was passed on to a peer", c.Schedules)
	case c.Method == MethodRandom && states < FewestStates:
		return inconclusive("only %d of the interesting states were reached in %d schedules; want at least %d", states, c.Schedules, FewestStates)
	case !c.Complete:
		return inconclusive("it was ended after %d schedules, without a violation until then", c.Schedules)
	case len(c.Shards) < c.Of:
		return CampaignVerdict{invariant.OutcomePass, fmt.Sprintf("no violation in %d schedules of shard %d of %d", c.Schedules, c.Shards[0].Index, c.Of)}
	default:
		return CampaignVerdict{invariant.OutcomePass, fmt.Sprintf("no violation in %d schedules", c.Schedules)}
	}
}

// Decides reports whether an invariant of that grade counts towards the verdict.
func (c *Campaign) Decides(g invariant.Grade) bool { return g == invariant.GradeCore || c.Strict }

// States is how many of the interesting states were reached.
func (c *Campaign) States() int { return c.states(func(r Reach) bool { return r.Schedules > 0 }) }

// PossibleStates is how many of them can be reached under the policy.
func (c *Campaign) PossibleStates() int {
	return c.states(func(r Reach) bool { return r.Impossible == "" })
}

func (c *Campaign) states(of func(Reach) bool) (n int) {
	for _, r := range c.Reached {
		if of(r) {
			n++
		}
	}
	return n
}

// Command is the command line that runs the search again, whatever its defaults become.
func (c *Campaign) Command() string {
	s := c.Spec
	words := []string{"skewproof", "explore"}
	if c.Method == MethodAll {
		words = []string{"skewproof", "exhaust"}
	}
	words = append(words, "--policy", s.Policy)
	for _, change := range s.Changes {
		words = append(words, "--change", change)
	}
	words = append(words, "--from", s.From, "--to", s.To, "--servers", strconv.Itoa(s.Servers), "--resources", strconv.Itoa(s.Resources))
	if c.Method == MethodAll {
		words = append(words, "--events", strconv.Itoa(c.Events()))
	} else {
		if s.Requests > 0 {
			words = append(words, "--requests", strconv.Itoa(s.Requests))
		}
		words = append(words, "--first", strconv.FormatUint(c.FirstSeed, 10), "--seeds", strconv.FormatUint(cmp.Or(c.Wanted, c.Schedules), 10))
	}
	if c.Of > len(c.Shards) {
		words = append(words, "--shard", fmt.Sprintf("%d/%d", c.Shards[0].Index, c.Of))
	}
	if c.Strict {
		words = append(words, "--strict")
	}
	return shell.Line(words...)
}

// Events is the most events of a schedule, where every schedule is run; 0 where they are random.
func (c *Campaign) Events() int {
	if c.Scope == nil {
		return 0
	}
	return c.Scope.Events
}
