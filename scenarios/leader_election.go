package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

var leaderElection = scenario.Scenario{
	Name: "leader-election",
	Happens: "Two kube-controller-managers with leader election are clients of the second and of the third server. The first server is " +
		"upgraded. Then the leader's server is restarted; the leader is cut off from its server; and the server of the next leader is " +
		"killed and started again. Owners and a namespace are deleted during each. Finally the other servers are upgraded.",
	Holds: "One of them leads at a time. If it cannot lead any more, another one takes over within the time of a lease. The leader " +
		"deletes no dependent of an owner that lives, and completes the work.",
	Source: "KEP-4020, motivation: a rolling upgrade of a highly available control plane, whose controllers elect a leader by a Lease, each " +
		"through its own server, as with kubeadm",
	About:      []string{"OneLeader", "NoWrongfulDeletion", "OrphansCollected", "NothingLeftBehind", "DeletionEnds"},
	MinServers: 3,
	Labels:     []string{"slow"},
	Limits:     withControllers,
	// The upgrade of the last server lets every collector catch up, so OrphansCollected holds
	// without a proxy too.
	Control: scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"NothingLeftBehind"}},
	Plan: planned(noneTo, pressureOfControllers, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.StartCandidate(p.From, "b") // it is the first server, so its controllers lead
		plan.Soak(10 * time.Second)
		plan.StartCandidate(p.From, "c")
		plan.Replace("a", p.To)
		plan.Settle(5 * time.Second)
		restarted, cutOff, killed := giveWork(plan, "restarted", 1), giveWork(plan, "cut-off", 1), giveWork(plan, "killed", 1)
		plan.Soak(5 * time.Second)

		plan.Restart("b")
		restarted.delete(plan)
		plan.Collect()

		heal := plan.Suffer(fault.Fault{Kind: fault.Cut, From: fault.Client, To: "b"})
		cutOff.delete(plan)
		plan.Collect() // controllers on the other servers take over
		heal()
		plan.Soak(5 * time.Second)

		plan.Kill("c")
		killed.delete(plan)
		plan.Collect() // they take over again
		plan.Start("c")
		plan.Settle(5 * time.Second)

		for _, server := range plan.Names()[1:] {
			plan.Replace(server, p.To)
			plan.Settle(5 * time.Second)
		}
		plan.Converge()
	}),
}
