//go:build race

package discovery

// thorough is the number of random cases of a single-threaded property. The race detector slows
// them down tenfold and finds nothing in them.
const thorough = 300
