package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/skewproof/skewproof/internal/scenario"
)

// What a run needs of the machine, as docs/conformance.md says. One in the simulator needs a processor, and little memory.
const (
	processorsOfARun      = 1.0
	processorsOfReference = 1.5 // each server is two processes
	memoryOfARun          = 2 << 30
)

// room is what the machine has for runs.
type room struct {
	processors int
	memory     uint64 // that can be had without swapping, in bytes; 0: not known
}

// warnCrowded says, in a line and before anything is run, that more runs at a time were asked for than there is room for. It is no error: what the machine
// does not keep up with comes out inconclusive.
func warnCrowded(progress io.Writer, parallel int, backend string, subjects ...string) {
	meminfo, _ := os.ReadFile("/proc/meminfo") // then its memory is not known
	here := room{processors: runtime.NumCPU(), memory: available(string(meminfo))}
	if why := here.lacks(parallel, backend, slices.Contains(subjects, scenario.SubjectReference)); why != "" {
		fmt.Fprintf(progress, "skewproof: --parallel %d is more than this machine has room for: %s; what it does not keep up with will be inconclusive\n", parallel, why)
	}
}

// lacks is what there is too little of for so many runs at a time, or nothing.
func (r room) lacks(parallel int, backend string, reference bool) string {
	if parallel < 2 {
		return "" // there is no smaller number to take
	}
	each := processorsOfARun
	if reference && backend != backendSim {
		each = processorsOfReference
	}
	var lacking []string
	if want := each * float64(parallel); want > float64(r.processors) {
		lacking = append(lacking, fmt.Sprintf("%d runs take %g processors, and there are %d", parallel, want, r.processors))
	}
	if backend != backendSim && r.memory > 0 && uint64(parallel)*memoryOfARun > r.memory {
		lacking = append(lacking, fmt.Sprintf("%d runs take %d GB of memory, and %.1f GB can be had", parallel, parallel*memoryOfARun>>30, float64(r.memory)/(1<<30)))
	}
	return strings.Join(lacking, "; ")
}

// available is MemAvailable of /proc/meminfo in bytes, 0 if it does not say.
func available(meminfo string) uint64 {
	for line := range strings.Lines(meminfo) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemAvailable:" {
			kilobytes, err := strconv.ParseUint(fields[1], 10, 64)
			if err != nil {
				return 0
			}
			return kilobytes << 10
		}
	}
	return 0
}
