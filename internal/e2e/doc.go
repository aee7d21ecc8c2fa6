// Package e2e holds the tests that run skewproof for real: its command line, real kube-apiservers,
// real faults. 'make e2e' runs them; they need the binaries of two versions (fetched on first use)
// and some minutes.
package e2e
