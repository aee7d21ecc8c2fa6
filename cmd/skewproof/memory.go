package main

import (
	"math"
	"runtime/debug"
)

// memoryLimit is the memory above which garbage is collected more often. What a history of a million
// requests needs is half of it.
const memoryLimit = 850 << 20

// limitMemory makes this process keep to memoryLimit, as far as it needs no more. A process may have
// as much garbage as what it needs, otherwise. GOMEMLIMIT takes precedence.
func limitMemory() {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(memoryLimit)
	}
}
