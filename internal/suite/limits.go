package suite

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/scenario"
)

// These are the needs of a run, as docs/conformance.md says. A run in the simulator needs a
// processor, and little memory.
const (
	processorsOfARun      = 1.0
	processorsOfReference = 1.5 // each server is two processes
	memoryOfARun          = 2 << 30
)

// capacity is the processors and the memory of the machine.
type capacity struct {
	processors int
	memory     uint64 // available without swapping, in bytes; 0 if it is not known
}

// machine is the capacity of this machine.
func machine() capacity {
	return capacity{runtime.NumCPU(), binaries.AvailableMemory()}
}

// lacks says what the machine has too little of for this number of parallel runs. It is empty if
// the machine has enough.
func (c capacity) lacks(parallel int, backend string, reference bool) string {
	if parallel < 2 {
		return "" // there is no smaller number to choose
	}
	each := processorsOfARun
	if reference && backend != scenario.BackendSim {
		each = processorsOfReference
	}
	var lacking []string
	if want := each * float64(parallel); want > float64(c.processors) {
		lacking = append(lacking, fmt.Sprintf("%d runs take %g processors, and there are %d", parallel, want, c.processors))
	}
	if backend != scenario.BackendSim && c.memory > 0 && uint64(parallel)*memoryOfARun > c.memory {
		lacking = append(lacking, fmt.Sprintf("%d runs take %d GB of memory, and %.1f GB can be had",
			parallel, parallel*memoryOfARun>>30, float64(c.memory)/(1<<30)))
	}
	return strings.Join(lacking, "; ")
}
