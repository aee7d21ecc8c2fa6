package reports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// CampaignKind, with [APIVersion], identifies a campaign. [ReadCampaign] refuses any other
// document.
const CampaignKind = "Campaign"

// These are the names of the files of a campaign. The repro files of its findings are in the same
// directory.
const (
	CampaignHTML = "campaign.html"
	CampaignJSON = "campaign.json"
)

// Method says how the schedules of a campaign were chosen.
type Method string

// These are all methods.
const (
	MethodRandom Method = "random" // each schedule is drawn from its seed
	MethodAll    Method = "all"    // every schedule of a bounded scope
)

// Campaign is the result of a search.
type Campaign struct {
	TypeMeta
	// SkewproofVersion is the version of the program that searched.
	SkewproofVersion string `json:"skewproofVersion"`
	// Spec says what was searched.
	Spec SearchSpec `json:"spec"`
	// Method says how the schedules were chosen.
	Method Method `json:"method"`
	// Scope is the set of schedules that a campaign of MethodAll runs.
	Scope *Scope `json:"scope,omitempty"`
	// FirstSeed is the seed of the first schedule. Wanted is the number of schedules that the search
	// was asked to run. It is 0 if it was asked to run for a time.
	FirstSeed uint64 `json:"firstSeed"`
	Wanted    uint64 `json:"wanted"`
	// Parts are the parts of the campaign, which ran one after the other. A campaign that was not
	// continued has one.
	Parts []Part `json:"parts"`
	// Complete is false if the search was ended before it had run all its schedules.
	Complete bool `json:"complete"`
	// Strict is true if extended invariants count towards the verdict like core ones.
	Strict bool `json:"strict"`
	// Known is true if what findings explain passes in CI (--known). It does not change the verdict.
	Known bool `json:"known,omitempty"`

	// Schedules is the number of schedules that were run.
	Schedules uint64 `json:"schedules"`
	// ElapsedSeconds is the time of all parts, without shrinking. SchedulesPerSecond is the rate.
	ElapsedSeconds     float64 `json:"elapsedSeconds"`
	SchedulesPerSecond float64 `json:"schedulesPerSecond"`
	// PassedOn is how many schedules had a request that was forwarded to a peer. If it is 0,
	// nothing was tested.
	PassedOn uint64 `json:"passedOn"`
	// Reached are all interesting states with the number of schedules that reached them, which may
	// be 0.
	Reached []Reach `json:"reached"`
	// Invariants are all invariants, with the number of schedules that violated each.
	Invariants []InvariantCount `json:"invariants"`
	// Findings are the violations, one for each kind. Violations of KEP demands come first.
	Findings []CampaignFinding `json:"findings"`
	// Growth says how the results grew with the number of schedules, in that order.
	Growth []GrowthPoint `json:"growth,omitempty"`
	// Checks are the search's checks of itself.
	Checks SelfChecks `json:"checks"`
	// Real has the results that only a campaign on real servers has (MethodReal).
	Real *RealCampaign `json:"real,omitempty"`
	// Troubles are schedules that could not be run.
	Troubles []Trouble `json:"troubles,omitempty"`
	// Verdict follows from all other fields.
	Verdict CampaignVerdict `json:"verdict"`
}

// SearchSpec says what is searched: a policy, with changes, on a control plane of two versions.
type SearchSpec struct {
	// Policy is the name of a preset, or "none" for the feature switched off.
	Policy string `json:"policy"`
	// Changes are the switches of the policy that differ from the preset:
	// "Knowledge.KeepLastGood=true".
	Changes []string `json:"changes,omitempty"`
	// From and To are the versions whose recorded documents the servers serve.
	From string `json:"from"`
	To   string `json:"to"`
	// Versions are all versions of the servers, oldest first, if they are more than From and To.
	Versions []string `json:"versions,omitempty"`
	// Servers is the number of servers. 0 means that each schedule has 1 to 5.
	Servers int `json:"servers"`
	// Resources is how many resources are served. They are those that differ most between the
	// versions. 0 means all that both versions serve.
	Resources int `json:"resources"`
	// Requests is the number of requests in a random schedule. 0 means the default.
	Requests int `json:"requests,omitempty"`
}

// AllVersions returns the versions of the servers, oldest first.
func (s SearchSpec) AllVersions() []string {
	if len(s.Versions) > 0 {
		return s.Versions
	}
	return []string{s.From, s.To}
}

// Shape says how many servers there are, and of which versions.
func (s SearchSpec) Shape() string {
	count := "1 to 5 apiservers"
	if s.Servers > 0 {
		count = counted(s.Servers, "apiserver")
	}
	all := s.AllVersions()
	return count + " of " + strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
}

// String returns the policy with its changes.
func (s SearchSpec) String() string {
	return strings.Join(append([]string{s.Policy}, s.Changes...), ", ")
}

// Part is a part of a campaign that one process searched.
type Part struct {
	// Schedules is how many schedules it ran, in ElapsedSeconds, with this number of Workers, on
	// this Machine.
	Schedules      uint64  `json:"schedules"`
	ElapsedSeconds float64 `json:"elapsedSeconds"`
	Workers        int     `json:"workers"`
	Machine        string  `json:"machine"`
}

// Scope is the set of schedules from which a campaign of MethodAll chooses.
type Scope struct {
	// Events is the largest number of events in a schedule.
	Events int `json:"events"`
	// Alphabet are all possible events. Not every event is possible in every state.
	Alphabet []string `json:"alphabet"`
	// Schedules is the number of schedules in the scope.
	Schedules uint64 `json:"schedules"`
}

// Reach says how many schedules reached an interesting state.
type Reach struct {
	// State is the name of the state. Schedules is how many schedules reached it.
	State     string `json:"state"`
	Schedules uint64 `json:"schedules"`
	// Impossible says why no schedule can reach the state under this policy. It is empty if some
	// schedule can.
	Impossible string `json:"impossible,omitempty"`
}

// InvariantCount is an invariant with the number of schedules that violated it.
type InvariantCount struct {
	// Name is the name in the catalogue. Grade says which source demands the invariant. Sentence
	// says what must hold.
	Name     string          `json:"name"`
	Grade    invariant.Grade `json:"grade"`
	Sentence string          `json:"sentence"`
	// Exercised is in how many histories the invariant had something to judge. If it
	// is 0, nothing is known.
	Exercised uint64 `json:"exercised"`
	// Violated is how many schedules violated it. Requests counts the same by the kind of request.
	Violated uint64         `json:"violated"`
	Requests []RequestCount `json:"requests"`
}

// RequestCount is how many schedules violated an invariant in a request of one kind. A schedule may
// count in several kinds.
type RequestCount struct {
	// Asked is the kind of the request. It is empty for plain requests.
	Asked RequestKind `json:"asked,omitempty"`
	// Violated is the number of these schedules.
	Violated uint64 `json:"violated"`
}

// RequestKind is the way in which a request differs from a plain one.
type RequestKind string

// These are all kinds of requests.
const (
	PlainRequest       RequestKind = ""
	SubresourceRequest RequestKind = "asked for a subresource"
	ForgedRequest      RequestKind = "asked with a forged hop header"
)

// RequestKinds are all kinds, in the order in which they are shown.
var RequestKinds = [...]RequestKind{PlainRequest, SubresourceRequest, ForgedRequest}

// ViolationKind is the common property of violations that a search shows only once: the finding
// that explains them, or their signature without circumstances.
type ViolationKind struct {
	// Finding is the number of the finding and Title its title. Finding is 0 if the violation is
	// NEW.
	Finding int    `json:"finding,omitempty"`
	Title   string `json:"title,omitempty"`
	// Signature is the signature of a NEW violation, without its circumstances. It is zero if the
	// violation is known.
	Signature invariant.Signature `json:"signature,omitzero"`
}

// String describes the kind in one line.
func (k ViolationKind) String() string {
	if k.Finding != 0 {
		return fmt.Sprintf("known (finding %d): %s", k.Finding, k.Title)
	}
	return "NEW: " + k.Signature.String()
}

// Compare orders the findings of a search: violations of KEP demands first, then by what removes
// them, then NEW violations, then by number of the finding.
func (f CampaignFinding) Compare(o CampaignFinding) int {
	return cmp.Or(cmp.Compare(f.Grade, o.Grade), cmp.Compare(f.Removal.Key(), o.Removal.Key()), cmp.Compare(f.Finding, o.Finding),
		f.ViolationKind.Signature.Compare(o.ViolationKind.Signature))
}

// CampaignFinding is a violation that a search found.
type CampaignFinding struct {
	ViolationKind
	// Invariant is the invariant that the example violates. Grade says which source demands it. A
	// finding may violate other invariants as well.
	Invariant string          `json:"invariant"`
	Grade     invariant.Grade `json:"grade"`
	// Schedules is how many schedules showed it.
	Schedules uint64 `json:"schedules"`
	// Seed is the seed of the first of these schedules.
	Seed uint64 `json:"seed"`
	// Sentence describes one violation in full. It is from the smallest schedule, if there is one.
	Sentence string `json:"sentence"`
	// Disturbances is how many steps of the smallest schedule disturb the cluster. Story describes
	// that schedule in words.
	Disturbances int      `json:"disturbances,omitempty"`
	Story        []string `json:"story,omitempty"`
	// File is the name of the repro file and Repro its content. Both are empty if it was not
	// written.
	File  string          `json:"file,omitempty"`
	Repro json.RawMessage `json:"repro,omitempty"`
	// Removal is the cause by experiment: what removes the violation. nil: this was not tried.
	// Findings with the same removal stand together.
	Removal *Removal `json:"removal,omitempty"`
	// Shrunk is false if there was no time to look for the smallest schedule.
	Shrunk bool `json:"shrunk"`
	// Real has the facts that only a finding on real servers has.
	Real *RealFinding `json:"real,omitempty"`
}

// GrowthPoint describes what the schedules of a campaign up to a number have in common.
type GrowthPoint struct {
	// Schedules is how many schedules are counted: the first ones.
	Schedules uint64 `json:"schedules"`
	// Kinds is how many kinds of violations they showed.
	Kinds int `json:"kinds"`
	// Cells is how many cells of the coverage were reached. It is 0 in the simulator.
	Cells int `json:"cells,omitempty"`
}

// SelfChecks are a search's checks of itself.
type SelfChecks struct {
	// Repeated is how many schedules were run twice. Differed is how many of them gave another
	// trace.
	Repeated uint64 `json:"repeated"`
	Differed uint64 `json:"differed"`
	// FirstDiffered is the seed of the first one, 0 if there is none.
	FirstDiffered uint64 `json:"firstDiffered,omitempty"`
}

// Trouble says why schedules could not be run, or ended in a panic.
type Trouble struct {
	// Sentence says what went wrong.
	Sentence string `json:"sentence"`
	// Schedules is how many schedules had this trouble. Seed is that of the first one.
	Schedules uint64 `json:"schedules"`
	Seed      uint64 `json:"seed"`
}
