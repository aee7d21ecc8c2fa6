//go:build race

package discovery

// thorough is how many random cases a single-threaded property is tried on. The race detector slows them down tenfold and has nothing to
// find in them.
const thorough = 300
