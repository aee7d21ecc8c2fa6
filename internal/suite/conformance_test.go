package conformance

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/scenarios"
)

func TestWrongUsageIsSeenBeforeAnythingRuns(t *testing.T) {
	for words, want := range map[string]string{
		"--labels=quiet&&":   `labels "quiet&&": Unexpected EOF; write them like`,
		"--labels=(quiet":    `could not find matching ')'; write`,
		"--servers=-1":       "want a number above 0",
		"--to=v1.36.3":       "from and to are both v1.36.3: with one version nothing is skewed",
		"--labels=nosuch":    "choose no scenario",
		"--labels=upgrad":    "choose no scenario", // no part of a label does
		"--kubeconfig=x":     "are for the backend existing",
		"--backend=existing": "needs --kubeconfig",
		"--backend=existing --kubeconfig=x --from=v1":    "are what they are",
		"--backend=existing --kubeconfig=x --parallel=2": "parallel 2: servers that run already get the requests of one run at a time",
	} {
		var o Options
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.Register(flags)
		flags.StringVar(&o.Labels, "labels", "", "")
		flags.IntVar(&o.Parallel, "parallel", 1, "")
		if err := flags.Parse(strings.Fields(words)); err != nil {
			t.Fatal(err)
		}
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
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
	for _, s := range scenarios.All() {
		for _, label := range slices.Concat([]string{s.Name}, s.Family.Labels(), s.Labels) {
			o := Options{Labels: label}
			if !slices.ContainsFunc(o.chosen(), func(c scenario.Scenario) bool { return c.Name == s.Name }) {
				t.Errorf("%q does not choose %s", label, s.Name)
			}
		}
	}
	upgrade, upgrades := &Options{Labels: "upgrade"}, &Options{Labels: "upgrades"}
	if one, many := len(upgrade.chosen()), len(upgrades.chosen()); one != many || one < 8 {
		t.Errorf("upgrade chooses %d scenarios, upgrades %d", one, many)
	}
	if n := len((&Options{}).chosen()); n != len(scenarios.All()) {
		t.Errorf("no labels choose %d scenarios, want all", n)
	}
}

// Every chosen scenario that is carried out is proved by a control run, or it is said why not.
func TestEveryScenarioHasItsControl(t *testing.T) {
	for _, backend := range []string{scenario.BackendLocal, scenario.BackendKind, scenario.BackendSim} {
		for _, controls := range []Controls{ControlsEach, ControlsFew} {
			o := Options{Backend: backend, Controls: controls}
			runs, unproven := o.controls()
			if len(runs) == 0 {
				t.Errorf("%s, %s: no control run", backend, controls)
			}
			for _, s := range o.chosen() {
				n := 0
				for _, r := range runs {
					if r.Name == s.Name {
						n++
					}
				}
				for _, u := range unproven {
					if u.Scenario == s.Name && u.Reason != "" {
						n++
					}
				}
				if carriedOut := s.Limits.Allows(backend); carriedOut && n != 1 || !carriedOut && n != 0 {
					t.Errorf("%s, %s: %s has %d controls or reasons for none", backend, controls, s.Name, n)
				}
			}
		}
	}
}

// A few control runs show all that the many do, and none of them only what others show.
func TestFewControlsShowAsMuch(t *testing.T) {
	for _, backend := range []string{scenario.BackendLocal, scenario.BackendKind, scenario.BackendSim} {
		each, _ := (&Options{Backend: backend}).controls()
		few, _ := (&Options{Backend: backend, Controls: ControlsFew}).controls()
		missing := map[aim]bool{}
		for _, c := range each {
			for _, a := range c.aims() {
				missing[a] = true
			}
		}
		if len(missing) < 6 {
			t.Errorf("%s: control runs show only %v", backend, missing)
		}
		slices.SortStableFunc(few, func(a, b control) int { return int(a.limit - b.limit) })
		for _, c := range few {
			more := false
			for _, a := range c.aims() {
				more = more || missing[a]
				delete(missing, a)
			}
			if !more {
				t.Errorf("%s: %s shows nothing that quicker ones do not", backend, c.Name)
			}
		}
		if len(missing) > 0 {
			t.Errorf("%s: few control runs do not show %v", backend, missing)
		}
		if len(few) > 3 {
			t.Errorf("%s: %d control runs are not few", backend, len(few))
		}
	}
}

// Somebody else's servers cannot be made to fail: the simulator is, and with scenarios only that can be carried out on them.
func TestControlsOfExistingServersRunInTheSimulator(t *testing.T) {
	o := Options{Backend: scenario.BackendExisting, Kubeconfig: "x", Labels: "openapi || nopeer-profile"}
	runs, unproven := o.controls()
	if len(runs) != 0 || len(unproven) != 2 {
		t.Errorf("control runs %+v, unproven %+v: the simulator has no OpenAPI, and plants no defect", runs, unproven)
	}
	o.Labels = "quiet || rolling-upgrade"
	runs, _ = o.controls()
	if len(runs) != 1 || runs[0].Name != "quiet" || runs[0].backend != scenario.BackendSim {
		t.Fatalf("control runs %+v, want quiet in the simulator", runs)
	}
	if words := strings.Join(runs[0].words, " "); strings.Contains(words, "kubeconfig") || !strings.Contains(words, "--subject none --only-reads") {
		t.Errorf("it is run as %s", words)
	}
}

func TestWordsOfARun(t *testing.T) {
	o := Options{Backend: "local", Subject: "reference", From: "v1.35.4", To: "v1.36.3", Servers: 2, Strict: true}
	if got := strings.Join(o.Words("rolling-upgrade"), " "); got != "rolling-upgrade --backend local --subject reference --from v1.35.4 --to v1.36.3 --servers 2 --strict" {
		t.Errorf("words %s", got)
	}
	o = Options{Backend: "existing", Kubeconfig: "/a:/b", Contexts: []string{"x", "y"}}
	if got := strings.Join(o.Words("quiet"), " "); got != "quiet --backend existing --kubeconfig /a:/b --contexts x,y" {
		t.Errorf("words %s", got)
	}
	if o.Words("nosuch") != nil {
		t.Error("there are words for a scenario that there is not")
	}
}

// What is queued ahead is what specs will ask for, and in their order.
func TestRunsAhead(t *testing.T) {
	for labels, want := range map[string]string{
		"quiet || two-servers-one-hostname || peer-crash": "scenarios/quiet scenarios/peer-crash control/quiet control/peer-crash",
		"(quiet || peer-crash) && !control":               "scenarios/quiet scenarios/peer-crash",
	} {
		o := Options{Backend: scenario.BackendSim, Labels: labels}
		var dirs []string
		for _, r := range o.ahead() {
			dirs = append(dirs, r.dir)
			if r.limit <= 0 || r.words[0] != filepath.Base(r.dir) {
				t.Errorf("%s is run for %s, by %q", r.dir, r.limit, r.words)
			}
		}
		if got := strings.Join(dirs, " "); got != want {
			t.Errorf("%s: %s, want %s", labels, got, want)
		}
	}
}

func TestWhatIsExpected(t *testing.T) {
	both := Options{Backend: scenario.BackendLocal, Labels: "quiet || many-peers", Parallel: 1} // the latter runs in the simulator only
	if said := both.Expected(); said != "scenarios: 1, control runs: 1, about 2 min" {
		t.Errorf("expected: %s", said)
	}
	both.Parallel = 2
	if said := both.Expected(); said != "scenarios: 1, control runs: 1, about 1 min with 2 at a time, if the machine keeps up" {
		t.Errorf("two at a time: %s", said)
	}
	both.Backend = scenario.BackendSim
	if said := both.Expected(); said != "scenarios: 2, control runs: 2" {
		t.Errorf("in the simulator: %s", said)
	}
	others := Options{Backend: scenario.BackendExisting, Kubeconfig: "x"}
	if said := others.Expected(); !strings.HasPrefix(said, "scenarios: 6, control runs: 4, about ") { // four of which the simulator has, and a subject fails
		t.Errorf("on servers that are somebody else's: %s", said)
	}
	whole := Options{Backend: scenario.BackendLocal, Parallel: 1}
	t.Log(whole.Expected()) // for the README
	if said := (&Options{Backend: scenario.BackendLocal, Labels: "safety"}).Expected(); !strings.Contains(said, "control runs: 0 (so the result will be inconclusive: choose one more") {
		t.Errorf("expected of what has no control: %s", said)
	}
	whole.Controls = ControlsFew
	t.Log(whole.Expected())
	for _, part := range []string{"smoke", "upgrades", "network", "processes", "configuration", "discovery", "safety || traffic"} { // for docs/conformance.md
		each := Options{Backend: scenario.BackendLocal, Parallel: 1, Labels: part}
		few := each
		few.Controls = ControlsFew
		t.Logf("%s: %s; with few controls: %s", part, each.Expected(), few.Expected())
	}
}
