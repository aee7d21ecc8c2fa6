package scenarios

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim/recorded"
)

var fieldSkew = scenario.Scenario{
	Name: "field-skew",
	Happens: "Only the first server runs TO. The controllers are clients of the last one. Through the first one, and later through the last " +
		"one, Deployments, StatefulSets and Jobs are created. Each of them has one of the fields that FROM drops and TO stores, by the recorded " +
		"comparison of both versions, at most four of each kind. They exist for 30 seconds.",
	Holds: "Workloads whose specification nobody changes stop producing objects, and no server drops a field in silence. With " +
		"`--kube-apiserver-flag emulated-version=` and the minor version of FROM, both hold.",
	Source: "KEP-4020, motivation: controllers work while versions are mixed; Kubernetes API concepts, field validation; KEP-4330, user " +
		"stories: upgrading the binary apart from the API (--emulated-version)",
	About: []string{"Settles", "NoFieldLost"},
	Limits: scenario.Limits{
		Backends: withControllers.Backends,
		Reason:   withControllers.Reason + ", and the simulator knows no fields",
	},
	Control: scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"Settles", "NoFieldLost"}},
	Plan: controlled(func(plan *scenario.Plan, p scenario.Parameters) {
		last := plan.Servers[len(plan.Servers)-1].Name
		plan.StartControllers(p.From, last)
		plan.Soak(10 * time.Second)
		for _, through := range []string{plan.Servers[0].Name, last} {
			o := scenario.Objects{Name: "fields-through-" + through, Workloads: Differing(p.From, p.To)}
			plan.CreateWorkloads(o, through)
			plan.Soak(30 * time.Second)
			plan.DeleteNamespace(o)
			plan.Collect()
		}
	}),
}

// mostFields bounds the workloads of one kind, so that the controllers have time for each. Fields
// that controllers copy come first.
const mostFields = 4

// Differing returns workloads with fields by which two versions differ, one field each, and one
// workload of each kind without such a field. Without a recorded comparison there are only these.
func Differing(from, to string) (all []scenario.Workload) {
	table, _ := recorded.Fields(from, to)
	for _, w := range []scenario.Workload{
		{GVR: history.GVR{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment"},
		{GVR: history.GVR{Group: "apps", Version: "v1", Resource: "statefulsets"}, Kind: "StatefulSet"},
		{GVR: history.GVR{Group: "batch", Version: "v1", Resource: "jobs"}, Kind: "Job"},
	} {
		all = append(all, w)
		most := len(all) + mostFields
		for _, copied := range []bool{true, false} {
			for _, f := range table.Fields {
				w.Field = f.Path
				if len(all) < most && f.Copied == copied && f.GVR == w.GVR && f.OnlyNewerStores() && !slices.Contains(all, w) {
					all = append(all, w)
				}
			}
		}
	}
	return all
}
