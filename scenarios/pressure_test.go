package scenarios

import (
	"reflect"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
)

// A minimum pressure that no invariant of the scenario checks could never make a run inconclusive.
func TestEveryPressureIsDemandedByAnInvariantOfTheScenario(t *testing.T) {
	for _, s := range All() {
		demands := reflect.ValueOf(s.Plan(parameters(max(3, s.MinServers), "v1.36.3", "v1.37.1")).Pressure)
		for i := range demands.NumField() {
			if demands.Field(i).IsZero() {
				continue
			}
			h := &history.History{Run: history.Run{About: s.About}}
			reflect.ValueOf(&h.Run.Pressure).Elem().Field(i).Set(demands.Field(i))
			demanded := false
			for _, v := range invariant.Judge(h) {
				demanded = demanded || strings.Contains(v.Reason, "too little pressure: 0 of at least")
			}
			if !demanded {
				t.Errorf("%s demands %s, and none of %v does", s.Name, demands.Type().Field(i).Name, s.About)
			}
		}
	}
}

// A scenario must demand requests of each class that its invariants are about. Otherwise a verdict
// may be based on no such request.
func TestScenariosDemandTheClassesThatTheyAreAbout(t *testing.T) {
	type demand = func(pressure) int
	passedOn := func(p pressure) int { return p.PassedOn }
	merged := func(p pressure) int { return p.MergedDocuments }
	classes := map[string]demand{
		"IdentityPreserved": passedOn, "PassedOnUnchanged": passedOn,
		"WritesOnce":             func(p pressure) int { return p.Writes },
		"WatchesLast":            func(p pressure) int { return p.Watches + p.Upgrades },
		"ListsAgree":             func(p pressure) int { return p.Lists },
		"AnsweredInKind":         func(p pressure) int { return p.Formats },
		"NoPeerIsLocal":          func(p pressure) int { return p.OwnDocuments },
		"LegacyListsOwn":         func(p pressure) int { return p.LegacyDocuments },
		"OpenAPIDescribes":       func(p pressure) int { return p.Descriptions },
		"NoLostEvents":           func(p pressure) int { return p.Events },
		"DiscoveryDeterministic": merged, "DiscoveryComplete": merged, "VersionOrder": merged,
	}
	traffics := map[scenario.Traffic]demand{
		scenario.WatchTraffic:       func(p pressure) int { return p.Watches },
		scenario.UpgradeTraffic:     func(p pressure) int { return p.Upgrades },
		scenario.SubresourceTraffic: func(p pressure) int { return p.Subresources },
		scenario.FormatTraffic:      func(p pressure) int { return p.Formats },
		scenario.LargeListTraffic:   func(p pressure) int { return p.Lists },
		scenario.HostileTraffic:     func(p pressure) int { return p.ForgedHops },
	}
	found := map[string]bool{}
	for _, s := range All() {
		plan := s.Plan(parameters(max(3, s.MinServers), "v1.36.3", "v1.37.1"))
		for _, about := range s.About {
			if of := classes[about]; of != nil {
				found[about] = true
				if of(plan.Pressure) == 0 {
					t.Errorf("%s is about %s, and demands no request of that class: %+v", s.Name, about, plan.Pressure)
				}
			}
		}
		if of := traffics[plan.Traffic]; of != nil && of(plan.Pressure) == 0 {
			t.Errorf("%s sends %s traffic, and demands none of it: %+v", s.Name, plan.Traffic, plan.Pressure)
		}
	}
	if len(found) != len(classes) {
		t.Errorf("scenarios are about %v only", found)
	}
}
