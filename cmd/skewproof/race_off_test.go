//go:build !race

package main

// raceEnabled says whether the race detector is on, which slows the simulator down tenfold.
const raceEnabled = false
