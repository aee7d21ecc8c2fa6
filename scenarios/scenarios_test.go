package scenarios

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
)

func parameters(servers int, from, to string) scenario.Parameters {
	return scenario.Parameters{Servers: servers, From: from, To: to, Bounds: history.DefaultBounds}
}

func TestTheCatalogueIsInOrder(t *testing.T) {
	var known []string
	for _, i := range invariant.All() {
		known = append(known, i.Name)
	}
	names := map[string]bool{}
	for _, s := range All() {
		t.Run(s.Name, func(t *testing.T) {
			if !regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)*$`).MatchString(s.Name) || names[s.Name] {
				t.Errorf("name %q is not lower case with hyphens, or taken", s.Name)
			}
			names[s.Name] = true
			for what, sentence := range map[string]string{"Happens": s.Happens, "Holds": s.Holds} {
				if !strings.HasSuffix(sentence, ".") {
					t.Errorf("%s is not a sentence: %q", what, sentence)
				}
			}
			if s.Source == "" || len(s.About) == 0 {
				t.Error("a scenario needs a source, and something it is about")
			}
			for _, about := range s.About {
				if !slices.Contains(known, about) {
					t.Errorf("it is about %s, which is no invariant", about)
				}
			}
		})
	}
}

// A scenario proves something only if it can fail, and if it can fail on an invariant that the KEP
// demands.
func TestEveryScenarioMustFailOnSomething(t *testing.T) {
	grades := map[string]invariant.Grade{}
	for _, i := range invariant.All() {
		grades[i.Name] = i.Grade
	}
	for _, s := range All() {
		if (s.Control.Subject == "") == (s.Control.Defect == "") {
			t.Errorf("%s: its control is subject %q and defect %q, want one of them", s.Name, s.Control.Subject, s.Control.Defect)
		}
		core := 0
		for n, name := range s.Control.Invariants {
			if grades[name] == "" || slices.Contains(s.Control.Invariants[:n], name) {
				t.Errorf("%s: its control must violate %s, which is no invariant or named twice", s.Name, name)
			}
			if grades[name] == invariant.GradeCore {
				core++
			}
		}
		if core == 0 {
			t.Errorf("%s: its control violates %v, nothing of which the KEP demands", s.Name, s.Control.Invariants)
		}
	}
}

// A crowd is for the reference, and for servers without a proxy.
func TestNoReleasedProxyIsCrowded(t *testing.T) {
	crowded := 0
	for _, s := range All() {
		plan := s.Plan(parameters(max(3, s.MinServers), "v1.36.3", "v1.37.1"))
		if slices.ContainsFunc(plan.Steps, func(step scenario.Step) bool { return step.Action == scenario.StartCrowd }) {
			crowded++
			if s.Limits.AllowsSubject(scenario.SubjectBuiltin) {
				t.Errorf("%s sends a crowd to released proxies", s.Name)
			}
		}
	}
	if crowded == 0 {
		t.Error("no scenario sends a crowd")
	}
}

func TestEveryPlanCanBeCarriedOut(t *testing.T) {
	for _, s := range All() {
		for _, servers := range []int{s.MinServers, 3, 7, 63} {
			for _, to := range []string{"v1.36.3", "v1.37.1"} {
				plan := s.Plan(parameters(servers, "v1.36.3", to))
				if to == "v1.36.3" && s.NeedsTwoVersions != skewed(plan.Pressure) {
					t.Errorf("%s: NeedsTwoVersions is %v, and of a cluster of one version it demands %+v", s.Name, s.NeedsTwoVersions, plan.Pressure)
				}
				if err := plan.Validate(); err != nil {
					t.Errorf("%s with %d servers, to %s: %v", s.Name, servers, to, err)
				}
				if len(plan.Servers) != servers {
					t.Errorf("%s with %d servers has %d", s.Name, servers, len(plan.Servers))
				}
				if plan.Pressure == (history.Pressure{}) {
					t.Errorf("%s asks for no pressure: nothing could make it inconclusive", s.Name)
				}
				if again := s.Plan(parameters(servers, "v1.36.3", to)); !cmp.Equal(plan, again) {
					t.Errorf("%s planned twice gives two plans", s.Name)
				}
			}
		}
	}
}

func TestWhichScenariosNeedNoTwoVersions(t *testing.T) {
	var got []string
	for _, s := range All() {
		if !s.NeedsTwoVersions {
			got = append(got, s.Name)
		}
	}
	want := []string{"quiet", "rolling-upgrade", "canary-upgrade", "rollback", "upgrade-downgrade-upgrade", "discovery-convergence",
		"crd-lifecycle", "crd-grace-period", "crd-version-grace-period", "crd-without-peers", "aggregated-api-lifecycle",
		"aggregated-api-grace-period", "loop-by-mutual-stale-belief", "true-404", "many-resources"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The simulator receives a plan as JSON, so JSON must keep everything in the plan.
func TestPlansSurviveJSON(t *testing.T) {
	for _, s := range All() {
		plan := s.Plan(parameters(3, "v1.36.3", "v1.37.1"))
		encoded, err := json.Marshal(plan)
		if err != nil {
			t.Fatal(err)
		}
		var decoded scenario.Plan
		if err := json.Unmarshal(encoded, &decoded); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plan, decoded); diff != "" {
			t.Errorf("%s (-before +after):\n%s", s.Name, diff)
		}
	}
}

func TestRollingUpgradeReplacesEveryServerOnce(t *testing.T) {
	plan := rollingUpgrade.Plan(parameters(5, "v1.36.3", "v1.37.1"))
	var replaced []string
	for _, s := range plan.Steps {
		if s.Action == scenario.Replace {
			if s.Version != "v1.37.1" {
				t.Errorf("%s is replaced by %s", s.Server, s.Version)
			}
			replaced = append(replaced, s.Server)
		}
	}
	if want := []string{"a", "b", "c", "d", "e"}; !slices.Equal(replaced, want) {
		t.Errorf("replaced %v, want %v", replaced, want)
	}
	if got := plan.Versions(); !slices.Equal(got, []string{"v1.36.3", "v1.37.1"}) {
		t.Errorf("versions %v", got)
	}
}

func TestFaultsLastLongerThanIgnoranceIsExcused(t *testing.T) {
	for _, s := range []scenario.Scenario{peerPartition, restartDuringPartition} {
		plan := s.Plan(parameters(3, "v1.36.3", "v1.37.1"))
		var on bool
		var lasted time.Duration
		for _, step := range plan.Steps {
			switch step.Action {
			case scenario.Inject:
				on = true
			case scenario.Heal:
				on = false
			case scenario.Soak:
				if on {
					lasted += step.For
				}
			}
		}
		if lasted <= plan.Bounds.Staleness {
			t.Errorf("%s: the fault lasts %s, within the %s that ignorance is excused for", s.Name, lasted, plan.Bounds.Staleness)
		}
	}
}

func TestFind(t *testing.T) {
	if s, err := Find("rolling-upgrade"); err != nil || s.Name != "rolling-upgrade" {
		t.Fatalf("got %q, %v", s.Name, err)
	}
	for asked, nearest := range map[string]string{"roling-upgrade": "rolling-upgrade", "Peer-Partition": "peer-partition", "xyzzy": ""} {
		_, err := Find(asked)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || unknown.Nearest != nearest {
			t.Errorf("asked for %q: %v; want the nearest to be %q", asked, err, nearest)
		}
	}
}
