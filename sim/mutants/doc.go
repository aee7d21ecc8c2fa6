// Package mutants proves that the search can find something: it plants defects in the proxy or in the simulated server, one at a time, and asks
// whether random schedules and the invariants notice. All of it is tests; 'make mutants' prints what was found and after how many schedules.
//
// Neither the generator of schedules nor any invariant knows of a mutant. A mutant that no invariant can see shows what nobody looks at:
// those are listed too, each with the reason.
package mutants
