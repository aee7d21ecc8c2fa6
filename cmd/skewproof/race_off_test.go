//go:build !race

package main

// raceEnabled says whether the race detector is on. It makes the simulator ten times slower.
const raceEnabled = false
