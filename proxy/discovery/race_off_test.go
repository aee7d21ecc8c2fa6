//go:build !race

package discovery

// thorough is the number of random cases of a single-threaded property.
const thorough = 4000
