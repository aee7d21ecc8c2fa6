package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var controllersWrongPeerCA = scenario.Scenario{
	Name: "controllers-wrong-peer-ca",
	Happens: "Only the first server runs TO. The controllers are clients of the second, which is restarted with a --peer-ca-file that has " +
		"signed no server's certificate. Owners of kinds that only the first serves are deleted, and so is a namespace with an " +
		"object of such a kind. Then the second server gets the right file, and the controllers are restarted.",
	Holds: "Meanwhile the controllers wait: no dependent of an owner that lives is deleted, and the namespace stays. With the right file " +
		"they complete their work, and nothing is left of the namespace.",
	Source: "KEP-4020, proxy transport between apiservers and authn: --peer-ca-file verifies peers' serving certificates; goals: 503, not " +
		"404. Risks and mitigations 6 has discovery fall back to the local one, which is what misleads the namespace controller",
	About:   []string{"NothingLeftBehind", "NoWrongfulDeletion", "OrphansCollected", "DeletionEnds"},
	Limits:  withControllers,
	Control: scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"OrphansCollected", "NothingLeftBehind"}},
	Plan: controlled(func(plan *scenario.Plan, p scenario.Parameters) {
		plan.StartControllers(p.From, "b")
		plan.Soak(10 * time.Second)
		kept, work := giveWork(plan, "kept", 0), giveWork(plan, "misled", 1)
		plan.SetUp("b", scenario.Setup{PeerCA: scenario.TrustStranger})
		plan.StartControllers(p.From, "b")
		plan.Settle(15 * time.Second)
		work.delete(plan)
		plan.Soak(15 * time.Second)
		plan.Restart("b")
		plan.Settle(5 * time.Second)
		// The garbage collector retries after delays that double up to 1000 seconds.
		plan.StartControllers(p.From, "b")
		plan.Soak(15 * time.Second)
		kept.delete(plan)
		plan.Collect()
	}),
}
