//go:build !race

package discovery

// thorough is how many random cases a single-threaded property is tried on.
const thorough = 4000
