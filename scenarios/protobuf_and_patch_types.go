package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var protobufAndPatchTypes = scenario.Scenario{
	Name: "protobuf-and-patch-types",
	Happens: "The first server runs TO, the others FROM. Clients use every media type that servers support (JSON, protobuf, YAML, CBOR, " +
		"tables, partial metadata) and every type of patch.",
	Holds:   "A request that is passed on arrives as it was sent, and the client can read the response.",
	Source:  "KEP-4020, goals: a request is handled by an apiserver that can serve it; RFC 9110, 7.6 and 12.5.1",
	About:   []string{"NoFalseNotFound", "PassedOnUnchanged", "AnsweredAlike", "AnsweredInKind", "ObjectsAgree", "Converges"},
	Labels:  []string{"conformance"},
	Control: scenario.Control{Defect: "always-called-text", Invariants: []string{"AnsweredInKind"}},
	Plan: planned(firstTo, pressure{Operations: 2500, Skewed: 400, PassedOn: 240, Formats: 5},
		func(plan *scenario.Plan, _ scenario.Parameters) {
			plan.Traffic = scenario.FormatTraffic
			plan.Settle(25 * time.Second)
			plan.Converge()
		}),
}
