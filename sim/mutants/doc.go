// Package mutants tests that the search finds defects: it plants one defect at a time in the proxy
// or in the simulated server, and checks that random schedules and the invariants find it. It has
// tests only; 'make mutants' prints which defects were found, and after how many schedules.
//
// The generator and the invariants do not know the mutants. Mutants that no invariant can find are
// listed too, each with the reason.
package mutants
