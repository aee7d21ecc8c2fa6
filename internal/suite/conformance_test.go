package suite

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios"
)

// casesOf returns the cases of a suite.
func casesOf(t *testing.T, c Conformance) (of, controls []*Case, unproven []reports.Unproven) {
	t.Helper()
	cases, unproven, err := c.Cases()
	if err != nil {
		t.Fatal(err)
	}
	first := slices.IndexFunc(cases, func(k *Case) bool { return k.Control != nil })
	if first < 0 {
		return cases, nil, unproven
	}
	return cases[:first], cases[first:], unproven
}

// on is a suite on a backend.
func on(backend string) Conformance { return Conformance{Spec: run.Spec{Backend: backend}} }

func TestWrongUsageIsSeenBeforeAnythingRuns(t *testing.T) {
	for words, want := range map[string]string{
		"--labels=quiet&&":   `labels "quiet&&": Unexpected EOF; write them like`,
		"--labels=(quiet":    `could not find matching ')'; write`,
		"--servers=-1":       "want a number above 0",
		"--to=v1.36.3":       "from and to are both v1.36.3: with one version nothing is skewed",
		"--labels=nosuch":    "choose no scenario",
		"--labels=upgrad":    "choose no scenario", // a part of a label chooses nothing
		"--kubeconfig=x":     "are for the backend existing",
		"--backend=moon":     "want local, kind, sim or existing",
		"--subject=nobodys":  "--subject",
		"--backend=existing": "needs --kubeconfig",
		"--backend=existing --kubeconfig=x --from=v1":    "are what they are",
		"--backend=existing --kubeconfig=x --parallel=2": "parallel 2: servers that run already get the requests of one run at a time",
	} {
		var c Conformance
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		c.Register(flags)
		flags.StringVar(&c.Labels, "labels", "", "")
		flags.IntVar(&c.Parallel, "parallel", 1, "")
		if err := flags.Parse(strings.Fields(words)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Cases(); err == nil || run.KindOf(err) != run.KindUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one that says %q", words, err, want)
		}
	}
	var c Controls
	if err := c.Set("none"); err == nil {
		t.Error("a conformance run without a negative control can be asked for")
	}
}

// A scenario is chosen by its name, its family and its labels.
func TestChosen(t *testing.T) {
	choose := func(labels string) []scenario.Scenario {
		chosen, err := Choose(labels)
		if err != nil {
			t.Error(err)
		}
		return chosen
	}
	for _, s := range scenarios.All() {
		for _, label := range slices.Concat([]string{s.Name}, s.Family.Labels(), s.Labels) {
			if !slices.ContainsFunc(choose(label), func(c scenario.Scenario) bool { return c.Name == s.Name }) {
				t.Errorf("%q does not choose %s", label, s.Name)
			}
		}
	}
	if one, many := len(choose("upgrade")), len(choose("upgrades")); one != many || one < 8 {
		t.Errorf("upgrade chooses %d scenarios, upgrades %d", one, many)
	}
	if n := len(choose("")); n != len(scenarios.All()) {
		t.Errorf("no labels choose %d scenarios, want all", n)
	}
}

// Every chosen scenario that runs has a control run, or the suite says why not.
func TestEveryScenarioHasItsControl(t *testing.T) {
	for _, backend := range []string{scenario.BackendLocal, scenario.BackendKind, scenario.BackendSim} {
		for _, few := range []Controls{ControlsEach, ControlsFew} {
			c := on(backend)
			c.Controls = few
			of, controls, unproven := casesOf(t, c)
			if len(controls) == 0 {
				t.Errorf("%s, %s: no control run", backend, few)
			}
			for _, k := range of {
				n := 0
				for _, r := range controls {
					if r.Control.Scenario == k.Scenario.Name {
						n++
					}
				}
				for _, u := range unproven {
					if u.Scenario == k.Scenario.Name && u.Reason != "" {
						n++
					}
				}
				if carriedOut := k.plan != nil; carriedOut && n != 1 || !carriedOut && n != 0 {
					t.Errorf("%s, %s: %s has %d controls or reasons for none", backend, few, k.Name, n)
				}
			}
		}
	}
}

// Only limits in the catalogue refuse a scenario.
func TestOnlyLimitsRefuseAScenario(t *testing.T) {
	for _, backend := range []string{scenario.BackendLocal, scenario.BackendKind, scenario.BackendSim} {
		for _, subject := range scenario.Subjects {
			c := on(backend)
			c.Spec.Subject = subject
			of, _, _ := casesOf(t, c)
			for i, s := range scenarios.All() {
				want := ""
				switch {
				case !s.Limits.Allows(backend):
					want = "it runs on " + strings.Join(s.Limits.Backends, ", ") + " only, because "
				case !s.Limits.AllowsSubject(subject):
					want = "it is for " + strings.Join(s.Limits.Subjects, ", ") + " only, because "
				}
				if k := of[i]; (k.plan == nil) != (want != "") || !strings.Contains(k.Scenario.Core.Reason, want) {
					t.Errorf("%s on %s with %s: refused %v, %s; want %q", s.Name, backend, subject, k.plan == nil, k.Scenario.Core.Reason, want)
				}
			}
		}
	}
}

// A few control runs show as much as all of them. Each of the few shows something that the quicker
// ones do not show.
func TestFewControlsShowAsMuch(t *testing.T) {
	for _, backend := range []string{scenario.BackendLocal, scenario.BackendKind, scenario.BackendSim} {
		c := on(backend)
		_, each, _ := casesOf(t, c)
		c.Controls = ControlsFew
		_, few, _ := casesOf(t, c)
		missing := map[shows]bool{}
		for _, k := range each {
			for _, s := range k.shows() {
				missing[s] = true
			}
		}
		if len(missing) < 6 {
			t.Errorf("%s: control runs show only %v", backend, missing)
		}
		slices.SortStableFunc(few, func(a, b *Case) int { return int(a.Limit - b.Limit) })
		for _, k := range few {
			more := false
			for _, s := range k.shows() {
				more = more || missing[s]
				delete(missing, s)
			}
			if !more {
				t.Errorf("%s: %s shows nothing that quicker ones do not", backend, k.Name)
			}
		}
		if len(missing) > 0 {
			t.Errorf("%s: few control runs do not show %v", backend, missing)
		}
		if len(few)*6 > len(each) {
			t.Errorf("%s: %d control runs of %d are not few", backend, len(few), len(each))
		}
	}
}

// Servers of another owner cannot be made to fail. So the control runs use the simulator, and only
// scenarios that can run on such servers.
func TestControlsOfExistingServersRunInTheSimulator(t *testing.T) {
	c := Conformance{Spec: run.Spec{Backend: scenario.BackendExisting, Kubeconfig: "../cluster/existing/testdata/two-servers.yaml"}, Labels: "openapi || nopeer-profile"}
	if _, controls, unproven := casesOf(t, c); len(controls) != 0 || len(unproven) != 2 {
		t.Errorf("%d control runs, unproven %+v: the simulator has no OpenAPI, and plants no defect", len(controls), unproven)
	}
	c.Labels = "quiet || rolling-upgrade"
	of, controls, _ := casesOf(t, c)
	if len(controls) != 1 || controls[0].Control.Scenario != "quiet" || controls[0].Control.Backend != scenario.BackendSim {
		t.Fatalf("control runs %+v, want quiet in the simulator", controls)
	}
	if words := controls[0].Spec.Command(); words != "skewproof run quiet --backend sim --subject none --only-reads" {
		t.Errorf("it is run as %s", words)
	}
	if k := of[1]; k.plan != nil || !strings.Contains(k.Scenario.Core.Reason, "changes or harms the control plane") {
		t.Errorf("%s is refused: %v, %s", k.Name, k.plan == nil, k.Scenario.Core.Reason)
	}
}

func TestTheCommandOfARun(t *testing.T) {
	for want, c := range map[string]Conformance{
		"skewproof run rolling-upgrade --backend local --subject reference --from v1.35.4 --to v1.36.3 --servers 2 --strict": {
			Labels: "rolling-upgrade", Spec: run.Spec{Backend: "local", Subject: "reference", From: "v1.35.4", To: "v1.36.3", Servers: 2, Strict: true},
		},
		"skewproof run restart-during-partition --backend local --servers 3": { // this scenario needs three servers
			Labels: "restart-during-partition", Spec: run.Spec{Backend: "local", Servers: 2},
		},
	} {
		if of, _, _ := casesOf(t, c); of[0].Scenario.Reproduce != want {
			t.Errorf("repeated by %s, want %s", of[0].Scenario.Reproduce, want)
		}
	}
}

// Labels choose the runs. Control runs have a label of their own.
func TestWhatLabelsChoose(t *testing.T) {
	for labels, want := range map[string]string{
		"quiet || two-servers-one-hostname || peer-crash": "scenarios/quiet scenarios/peer-crash control/quiet control/peer-crash",
		"(quiet || peer-crash) && !control":               "scenarios/quiet scenarios/peer-crash",
	} {
		c := on(scenario.BackendSim)
		c.Labels = labels
		of, controls, _ := casesOf(t, c)
		var dirs []string
		for _, k := range slices.Concat(of, controls) {
			if k.wanted && k.plan != nil {
				dirs = append(dirs, k.dir)
			}
			if k.plan != nil && (k.Limit <= 0 || k.Spec.Scenario != filepath.Base(k.dir)) {
				t.Errorf("%s is run for %s, by %+v", k.dir, k.Limit, k.Spec)
			}
		}
		if got := strings.Join(dirs, " "); got != want {
			t.Errorf("%s: %s, want %s", labels, got, want)
		}
	}
}

func TestWhatIsExpected(t *testing.T) {
	said := func(c Conformance) string {
		cases, _, err := c.Cases()
		if err != nil {
			t.Fatal(err)
		}
		return c.expected(cases)
	}
	both := on(scenario.BackendLocal)
	both.Labels, both.Parallel = "quiet || many-peers", 1 // many-peers runs only in the simulator
	if said := said(both); said != "scenarios: 1, control runs: 1, about 2 min" {
		t.Errorf("expected: %s", said)
	}
	both.Parallel = 2
	if said := said(both); said != "scenarios: 1, control runs: 1, about 1 min with 2 at a time, if the machine keeps up" {
		t.Errorf("two at a time: %s", said)
	}
	both.Spec.Backend = scenario.BackendSim
	if said := said(both); said != "scenarios: 2, control runs: 2" {
		t.Errorf("in the simulator: %s", said)
	}
	whole := on(scenario.BackendLocal)
	safety := whole
	safety.Labels = "safety"
	if said := said(safety); !strings.Contains(said, "control runs: 0 (so the result will be inconclusive: choose one more") {
		t.Errorf("expected of what has no control: %s", said)
	}
	figures := func(labels string, controls Controls) (number, minutes string) {
		whole.Labels, whole.Controls = labels, controls
		all := regexp.MustCompile(`scenarios: (\d+), .*about (\d+) min`).FindStringSubmatch(said(whole))
		return all[1], all[2]
	}
	number, all := figures("", ControlsEach)
	_, few := figures("", ControlsFew)
	minutes := []any{all, number, few}
	for _, labels := range []string{"smoke", "traffic", "configuration", "discovery", "controllers"} { // traffic and configuration bound the other families
		_, part := figures(labels, ControlsEach)
		minutes = append(minutes, part)
	}
	want := fmt.Sprintf("%s on real processes for all %s scenarios that it runs there, with their controls (%s with few), %s for `smoke`, "+
		"%s to %s for most families, %s for `discovery` and %s for `controllers`.", minutes...)
	page, err := os.ReadFile("../../docs/conformance.md")
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(page)), " "), want) {
		t.Errorf("docs/conformance.md does not say, error %v: %s", err, want)
	}
}
