package kind

import (
	"fmt"

	"github.com/skewproof/skewproof/internal/scenario"
)

// CheckPlan refuses plans of which a kind cluster cannot do a part. It is what the limits of the catalogue's scenarios follow from.
func CheckPlan(plan scenario.Plan) error {
	refuse := func(what string) error {
		return fmt.Errorf("--backend %s cannot carry this scenario out: it %s; use --backend %s", scenario.BackendKind, what, scenario.BackendLocal)
	}
	setUp := func(server string, setup *scenario.Setup) error {
		if err := CheckSetup(setup); err != nil {
			return refuse("sets server " + server + " up in a way of its own (" + err.Error() + ")")
		}
		return nil
	}
	for _, s := range plan.Servers {
		if err := setUp(s.Name, s.Setup); err != nil {
			return err
		}
	}
	for _, s := range plan.Steps {
		if err := setUp(s.Server, s.Setup); err != nil {
			return err
		}
		switch {
		case s.Action == scenario.BreakDiscovery:
			return refuse("lets a discovery document fail")
		case s.Definition != nil && s.Definition.Aggregated:
			return refuse("has an aggregated API, behind which no program of ours runs there")
		}
	}
	return nil
}
