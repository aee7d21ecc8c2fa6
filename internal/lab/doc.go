// Package lab holds the net under the judge and the simulator: what toxiproxy does with each fault,
// the simulated catalogue and saved histories with what is expected of them, altered histories that
// the judge must call wrong, and mutants of the judge itself. It has no code but tests.
// docs/lab/net.md describes it.
package lab
