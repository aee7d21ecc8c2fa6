package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

// steps adds steps to a plan.
type steps func(*scenario.Plan, scenario.Parameters)

// task is the work of a scenario in three parts, so that a scenario can put a disturbance around
// the middle part.
type task struct{ prepare, act, finish steps }

// alone carries out the task without a disturbance.
func (t task) alone(plan *scenario.Plan, p scenario.Parameters) {
	t.prepare(plan, p)
	t.act(plan, p)
	t.finish(plan, p)
}

// disturbance begins a disturbance, calls meanwhile, and ends the disturbance.
type disturbance func(plan *scenario.Plan, meanwhile func())

// during carries out the task with a disturbance around its middle part.
func (t task) during(d disturbance) steps {
	return func(plan *scenario.Plan, p scenario.Parameters) {
		t.prepare(plan, p)
		d(plan, func() { t.act(plan, p) })
		t.finish(plan, p)
	}
}

// partition cuts the second server off from the first, and restarts the third meanwhile, because a
// server may then forget what it knows about a peer that it cannot reach.
func partition(plan *scenario.Plan, meanwhile func()) {
	plan.Inject("b to a", cut("b", "a"))
	plan.Soak(5 * time.Second)
	plan.Restart("c")
	plan.Soak(10 * time.Second)
	meanwhile()
	plan.Soak(20 * time.Second)
	plan.Heal("b to a")
}

// duringPartition is another scenario's task, carried out during a partition. act names the middle
// part of the task: "the owners are deleted".
func duringPartition(like scenario.Scenario, act, holds string, plan func(scenario.Parameters) scenario.Plan) scenario.Scenario {
	s := like
	s.Name += "-during-partition"
	s.Happens = "As in " + like.Name + ", but while " + act + ", the second server cannot reach the first, and the third is restarted."
	s.Holds = holds
	s.Source += "; goals: 503 and not 404 if the server that could answer cannot be reached"
	s.MinServers = 3
	s.Labels = []string{"slow"}
	s.Plan = plan
	return s
}

// These are tasks of controllers, informers and clients in a partition. The control of each is that
// of the scenario without a partition, because without a proxy the harm does not need a partition.
var (
	garbageCollectionDuringPartition = duringPartition(garbageCollection, "the controllers are restarted and the owners are deleted",
		"The garbage collector deletes no dependent of an owner that lives, and all dependents of owners that are gone, at the latest when the partition is over.",
		controlled(collecting.during(partition)))
	foregroundDeletionDuringPartition = duringPartition(foregroundDeletion, "the owners are deleted",
		"The garbage collector deletes the dependents, and then lets the owners go, at the latest when the partition is over.",
		controlled(collectingForeground.during(partition)))
	quotaDuringPartition = duringPartition(quota, "the owners are deleted",
		"The status of the quota says how many objects there are, of either kind, before the partition and after it.",
		controlled(counting.during(partition)))
	informersDuringPartition = duringPartition(informers, "objects are created and deleted",
		"Every informer gets each change once and in order, at the latest when the partition is over. In the end it has what is in etcd.",
		planned(firstTo, pressureOfInformers, informing.during(partition)))
	storageVersionDuringPartition = duringPartition(storageVersion, "the objects are read, updated and patched through each of the others",
		"Requests for resources that cannot be reached are answered 503. No write loses a field that it does not name.",
		planned(firstTo, pressureOfRewrites, rewriting.during(partition)))
)
