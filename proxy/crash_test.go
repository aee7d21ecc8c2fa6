package proxy

import "testing"

// Only a policy with that quirk crashes, by the first fetch that fails, and not by a later one.
func TestCrashOnAFailedFetch(t *testing.T) {
	fetched := func(id ServerID) Event { return Fetched{At: epoch, Results: []FetchResult{failedFetch(id)}} }
	p := Reference()
	if got := table(p, append(peersLive("a"), fetched("a"))...).Crashed(); got != "" {
		t.Errorf("the reference crashes: %s", got)
	}
	p.Quirks.CrashOnFailedFetch = true
	tbl := table(p, append(peersLive("a", "b"), fetched("a"))...)
	first := tbl.Crashed()
	tbl = tbl.Observe(fetched("b"))
	if first == "" || tbl.Crashed() != first {
		t.Errorf("crashed by %q, and later by %q; want the first failure", first, tbl.Crashed())
	}
}
