// Package conformance is the conformance suite: a Ginkgo spec for each scenario of the catalogue, and one for each proof that the scenario
// can fail.
//
// A spec is one run of the program, in a process of its own: it runs the scenario, reads the report that the run left, and says what it
// came to. So whatever becomes of a run, its sandbox ends with its process, and the suite goes on. Only a run whose verdict is pass is a
// passed spec: an inconclusive one fails, with the reason, and one that cannot be carried out on the backend is skipped, with the reason.
//
// In the end a report is written ([reports.ConformanceReport]). Without a negative control that fails as it must, it says "inconclusive".
//
// Specs follow each other, their runs need not: a [Queue] carries out several at a time, ahead of the specs that wait for them.
//
// 'skewproof conformance' runs the suite with nothing else installed; 'go test ./scenarios/conformance -args --backend local' and the
// ginkgo program (which can spread it over several processes) run the same one.
package conformance
