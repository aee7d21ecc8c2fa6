package reports

import (
	"fmt"

	"github.com/skewproof/skewproof/internal/shell"
)

// SmallestKind identifies the document, with [APIVersion].
const SmallestKind = "SmallestChange"

// SmallestJSON is the file of a smallest set of changes for programs.
const SmallestJSON = "smallest.json"

// Smallest is the smallest set of changes that was found to leave a policy without a violation of a
// core invariant, over schedules and scenarios. No change of the set can be left out.
type Smallest struct {
	TypeMeta
	// SkewproofVersion is the version of the program that searched. Inputs is a hash of what the
	// result depends on: the switches of both policies, the schedules and the simulator.
	SkewproofVersion string `json:"skewproofVersion"`
	Inputs           string `json:"inputs"`
	// Spec says what was changed, and To is the policy that the changes are taken from.
	Spec SearchSpec `json:"spec"`
	To   string     `json:"to"`
	// Switches is the number of switches in which the policies differ.
	Switches int `json:"switches"`
	// Schedules is how many random schedules nothing is violated in, from the seed FirstSeed on.
	Schedules uint64 `json:"schedules"`
	FirstSeed uint64 `json:"firstSeed"`
	// Scenarios is how many scenarios nothing is violated in. NotRun are those that the simulator
	// does not run.
	Scenarios int      `json:"scenarios"`
	NotRun    []string `json:"notRun,omitempty"`
	// Left are violations that stay with all changes at once, each with its place. The set is not
	// held to these.
	Left []string `json:"left,omitempty"`
	// Rows are the changes of the set, in the order of their declaration.
	Rows []SmallestRow `json:"rows"`
	// Costs are those of all changes of the set together.
	Costs Costs `json:"costs"`
}

// SmallestRow is a change of the set.
type SmallestRow struct {
	// Change is the change: "Knowledge.FailClosed=true".
	Change string `json:"change"`
	// Schedules is how many schedules violate a core invariant if only this change is left out of
	// the set. Violated counts them by invariant.
	Schedules uint64          `json:"schedules"`
	Violated  []SmallestCount `json:"violated,omitempty"`
	// Scenarios are scenarios that fail then, of those that were tried.
	Scenarios []string `json:"scenarios,omitempty"`
	// Costs are those of the policy with this change alone.
	Costs Costs `json:"costs"`
}

// SmallestCount is how many schedules violate an invariant.
type SmallestCount struct {
	// Invariant is the name of the invariant.
	Invariant string `json:"invariant"`
	// Schedules is the number of schedules that violate it.
	Schedules uint64 `json:"schedules"`
}

// Costs are what changes cost, against the policy without them.
type Costs struct {
	// FetchesPerHour is how many discovery documents all servers fetch of one another in an hour in
	// which nothing happens, and Fetches how many without the changes.
	FetchesPerHour float64 `json:"fetchesPerHour"`
	Fetches        float64 `json:"fetches"`
	// Attempts is the ratio of attempts at peers for each request that needs one. Latency is the
	// ratio of the mean time until a peer's answer has come. Both are over schedules full of faults.
	Attempts float64 `json:"attempts"`
	Latency  float64 `json:"latency"`
}

var smallestSets = readable[*Smallest]{
	"smallest set of changes", SmallestKind, "run 'skewproof ablate --smallest' again to write a new one", false, (*Smallest).check,
}

// ReadSmallest reads a smallest set of changes. It refuses any other document, unknown fields and
// contradictions. The error names the file and what is wrong with it.
func ReadSmallest(path string) (*Smallest, error) { return smallestSets.read(path) }

// check refuses a set that the renderings could not show truthfully.
func (s *Smallest) check() error {
	if len(s.Rows) > s.Switches || s.Scenarios < 0 {
		return fmt.Errorf("it has %d changes of %d switches, and %d scenarios: the file was altered", len(s.Rows), s.Switches, s.Scenarios)
	}
	for n, r := range s.Rows {
		if r.Schedules > s.Schedules {
			return fmt.Errorf("rows[%d] has %d of %d schedules: the file was altered", n, r.Schedules, s.Schedules)
		}
		for _, v := range r.Violated {
			if v.Schedules > r.Schedules {
				return fmt.Errorf("rows[%d]: %d of %d schedules violate %s: the file was altered", n, v.Schedules, r.Schedules, v.Invariant)
			}
		}
	}
	return nil
}

// Command is the command line that looks for the set again, even if the defaults change later.
func (s *Smallest) Command() string {
	words := append(s.Spec.ablate(s.To, s.FirstSeed, s.Schedules), "--smallest")
	if s.Scenarios+len(s.NotRun) == 0 {
		words = append(words, "--only-schedules")
	}
	return shell.Line(words...)
}
