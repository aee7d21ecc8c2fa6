package main

import (
	"math"
	"runtime/debug"
)

// memoryLimit is the memory above which garbage is collected more often. A history of a million
// requests needs half of it.
const memoryLimit = 850 << 20

// limitMemory makes this process stay below memoryLimit as long as its live memory allows that.
// Without a limit, a process may have as much garbage as live memory. GOMEMLIMIT takes precedence.
func limitMemory() {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(memoryLimit)
	}
}
