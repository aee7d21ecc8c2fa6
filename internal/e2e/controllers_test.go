package e2e

import (
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/scenarios"
)

// The test shows the harm itself, with a real kube-controller-manager as a client of the older
// server. Without a proxy the garbage collector never learns that an owner exists, and does not
// delete its dependents.
func TestGarbageCollectionWithoutTheProxy(t *testing.T) {
	onlyWithAll(t)
	needsCluster(t)
	needsVersions(t, newPair.from, newPair.to)
	r, report := runScenario(t, "garbage-collection", "--subject", "none", "--from", newPair.from, "--to", newPair.to)
	exits(t, r, fail)
	v := verdict(t, report, "OrphansCollected")
	if v.Outcome != invariant.OutcomeFail {
		t.Fatalf("OrphansCollected: %s, want %s %s", v.Outcome, invariant.OutcomeFail, v.Reason)
	}
	e := v.Evidence[0]
	if len(e.Objects) != 2 || !strings.Contains(e.Sentence, e.Objects[0].Kind+" "+e.Objects[0].Name) || e.Objects[1].Kind != "ConfigMap" {
		t.Errorf("the evidence tells of no owner and dependent: %s %+v", e.Sentence, e.Objects)
	}
}

// With the reference proxy in front of the older server it deletes these dependents, and nothing
// else.
func TestGarbageCollectionWithReference(t *testing.T) {
	s, err := scenarios.Find("garbage-collection")
	if err != nil {
		t.Fatal(err)
	}
	holds(t, s, newPair)
}
