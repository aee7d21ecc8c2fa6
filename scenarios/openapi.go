package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var openAPI = Scenario{
	Name: "openapi",
	Happens: "The first server runs TO, the others FROM, and a custom resource is defined, unless nothing may be changed. Clients ask every server for its description " +
		"of the API, OpenAPI 2 and 3.",
	Holds:            "Every server answers, and describes at least what it serves itself: in the document of version 2, in the index of version 3, and, of what is built in, in the document of each group version.",
	Source:           "beyond KEP-4020, which leaves OpenAPI as it is: kubectl and controllers validate and convert by it",
	About:            []string{"OpenAPIDescribes", "NoFalseNotFound"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           Discovery,
	Limits:           Limits{Backends: []string{BackendLocal, BackendKind, BackendExisting}, Reason: "because the simulator's apiservers describe nothing"},
	Control:          askedInVain,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		plan.Traffic = DiscoveryTraffic
		plan.settle(10 * time.Second)
		if !p.ReadOnly {
			plan.define(widgets("v1"))
		}
		plan.settle(15 * time.Second)
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 1000, Skewed: 100}
		return *plan
	},
}
