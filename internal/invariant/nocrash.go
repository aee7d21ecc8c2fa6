package invariant

import (
	"fmt"

	"github.com/skewproof/skewproof/internal/history"
)

var noCrash = Invariant{
	Name:     "NoCrash",
	Grade:    GradeCore,
	Sentence: "No apiserver ends or panics by itself.",
	Source:   "not in KEP-4020: a control plane that crashes keeps none of its promises",
	judge:    judgeNoCrash,
}

func judgeNoCrash(f *Facts) *tally {
	t := newTally(f)
	processes := map[process]bool{}
	for _, l := range f.lifecycle {
		processes[process{l.Server, l.Incarnation}] = true
		if l.State != history.StateCrashed {
			continue
		}
		t.violation(breach{Signature: f.crash(l), asked: l.Server, at: l.At, cause: "crashed"}, func() Evidence {
			sentence := fmt.Sprintf("%s (%s, start %d) ended by itself at %s", l.Server, l.Version, l.Incarnation, clock(l.At))
			if l.Detail != "" {
				sentence += ": " + l.Detail
			}
			return Evidence{Sentence: sentence, Lifecycle: &l}
		})
	}
	t.verdict.Checked = len(processes)
	if len(processes) == 0 {
		t.doubt("the history has no record of any apiserver's process")
	}
	if f.run.External {
		t.doubt("skewproof did not start the servers, so it does not see their processes")
	}
	t.fact("apiserver processes", len(processes))
	return t
}

// crash is the signature of a process that ended by itself.
func (f *Facts) crash(l history.Lifecycle) Signature {
	s := Signature{Mechanism: MechanismProcess, Wrong: "crashed"}
	if old := generation(l.Version); old != "" {
		s.Setup = "asked server: " + old
	}
	return s
}
