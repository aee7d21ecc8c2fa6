//go:build race

package discovery

// thorough is the number of random cases of a single-threaded property. The race detector makes
// them ten times slower, and finds nothing in them.
const thorough = 300
