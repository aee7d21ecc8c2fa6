package run

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim"
)

// twoServers is a kubeconfig of two servers. Neither of them runs.
const twoServers = "../cluster/existing/testdata/two-servers.yaml"

func override(t *testing.T, word string) binaries.Overrides {
	t.Helper()
	o := binaries.Overrides{}
	if err := o.Set(word); err != nil {
		t.Fatal(err)
	}
	return o
}

// Every error in a Spec is found before anything is fetched or started, and is wrong usage.
func TestWhatAPlanRefuses(t *testing.T) {
	on := func(backend string, change func(*Spec)) Spec {
		s := Spec{Scenario: "quiet", Backend: backend}
		if backend == "existing" {
			s.Kubeconfig = twoServers
		}
		change(&s)
		return s
	}
	for want, s := range map[string]Spec{
		`did you mean "quiet"`:                       {Scenario: "quite"},
		`--backend "moon": want local, kind, sim or`: {Scenario: "quiet", Backend: "moon"},
		"--from: ":                     on("local", func(s *Spec) { s.From = "v1.36" }),
		"--to: ":                       on("sim", func(s *Spec) { s.To = "newest" }),
		"--etcd: ":                     on("local", func(s *Spec) { s.Etcd = "banana" }),
		"--etcd v3.5.24: a run starts": on("local", func(s *Spec) { s.Etcd = "v3.5.24" }),
		`--subject "alpha": the backend local has`:      on("local", func(s *Spec) { s.Subject = "alpha" }),
		`--subject "beta": the backend sim has builtin`: on("sim", func(s *Spec) { s.Subject = "beta" }),
		"runs on sim only":                              on("local", func(s *Spec) { s.Scenario = "many-peers" }),
		"newer than the default --to":                   on("local", func(s *Spec) { s.From = "v1.99.0" }),
		"older than the default --from":                 on("local", func(s *Spec) { s.To = "v1.35.4" }),
		"give the older version as --from":              on("local", func(s *Spec) { s.From, s.To = "v1.37.1", "v1.36.3" }),
		"needs two versions":                            on("local", func(s *Spec) { s.Scenario, s.To = "peer-partition", "v1.36.3" }),
		"--servers 1: quiet needs 2 to":                 on("local", func(s *Spec) { s.Servers = 1 }),
		"--servers -1: ":                                on("local", func(s *Spec) { s.Servers = -1 }),
		"--servers 101: quiet needs 2 to 100":           on("sim", func(s *Spec) { s.Servers = 101 }),
		"--servers 8: quiet needs 2 to 7":               on("kind", func(s *Spec) { s.Servers = 8 }),
		"--soak -1m0s: want how much longer":            on("local", func(s *Spec) { s.Soak = -time.Minute }),
		"--qps -1: want a rate":                         on("sim", func(s *Spec) { s.QPS = -1 }),
		"--qps 1e+09: want a rate":                      on("existing", func(s *Spec) { s.QPS = 1e9 }),
		"--only-reads: peer-crash does more: step 2":    on("sim", func(s *Spec) { s.Scenario, s.OnlyReads = "peer-crash", true }),
		"v1.36.3, v1.36.5, v1.37.1":                     on("sim", func(s *Spec) { s.From = "v1.36.2" }),
		"cannot be mixed with that of later versions":   on("local", func(s *Spec) { s.From, s.To = "v1.32.1", "v1.34.4" }),
		"v1.33.0 has no Mixed Version Proxy":            on("local", func(s *Spec) { s.Scenario, s.From, s.To = "rolling-upgrade", "v1.32.0", "v1.33.0" }),
		"older than v1.30":                              on("kind", func(s *Spec) { s.Subject, s.From = "reference", "v1.29.9" }),
		"no server of this run is that; it has kube-apiserver@v1.36.3, kube-apiserver@v1.37.1, etcd@v3.6.8": on("local", func(s *Spec) {
			s.Binaries = override(t, "kube-apiserver@v1.38.0=/bin/true")
		}),
		"nosuch, cannot be used":                                       on("local", func(s *Spec) { s.Binaries = override(t, "kube-apiserver@v1.37.1=nosuch") }),
		"--binary means nothing with --backend sim":                    on("sim", func(s *Spec) { s.Binaries = override(t, "etcd@v3.6.8=/bin/true") }),
		"--etcd means nothing with --backend sim, which":               on("sim", func(s *Spec) { s.Etcd = binaries.DefaultEtcd }),
		"--keep means nothing with --backend sim":                      on("sim", func(s *Spec) { s.Keep = true }),
		"--no-load means nothing with --backend sim":                   on("sim", func(s *Spec) { s.NoLoad = true }),
		"--at means nothing with --backend existing":                   on("existing", func(s *Spec) { s.At = new(0) }),
		"--no-load proves nothing: it is for a cluster that":           on("local", func(s *Spec) { s.NoLoad = true }),
		"--at says when the cluster is held; give --keep too":          on("kind", func(s *Spec) { s.At = new(0) }),
		"--at -1: quiet has the steps 1 to 3":                          on("local", func(s *Spec) { s.Keep, s.At = true, new(-1) }),
		"--at 4: quiet has the steps 1 to 3":                           on("kind", func(s *Spec) { s.Keep, s.At = true, new(4) }),
		"--etcd means nothing with --backend kind: the node":           on("kind", func(s *Spec) { s.Etcd = "v3.6.8" }),
		"runs on local, sim only, because the kubelet":                 on("kind", func(s *Spec) { s.Scenario = "expired-serving-certificate" }),
		"--kubeconfig is for --backend existing":                       on("local", func(s *Spec) { s.Kubeconfig = twoServers }),
		"--contexts is for --backend existing":                         on("", func(s *Spec) { s.Contexts = []string{"a"} }),
		"--backend existing needs --kubeconfig":                        {Scenario: "quiet", Backend: "existing"},
		"--subject \"none\": the backend existing has":                 on("existing", func(s *Spec) { s.Subject = "none" }),
		"--from means nothing with --backend existing":                 on("existing", func(s *Spec) { s.From = DefaultFrom }),
		"--servers means nothing":                                      on("existing", func(s *Spec) { s.Servers = 2 }),
		"two servers at least":                                         on("existing", func(s *Spec) { s.Contexts = []string{"a"} }),
		"2 servers: many-peers needs 50":                               on("existing", func(s *Spec) { s.Scenario = "many-peers" }),
		"rolling-upgrade cannot run on servers that skewproof did not": on("existing", func(s *Spec) { s.Scenario = "rolling-upgrade" }),
		"scenario mine: ":                                              {Own: &Own{Name: "mine", Plan: scenario.Plan{Steps: []scenario.Step{{Action: "dance"}}}}, Servers: 3},
	} {
		if _, err := s.Plan(); err == nil || KindOf(err) != KindUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v; want wrong usage that says %q", s, err, want)
		}
	}
	_, err := Spec{Scenario: "quiet", Backend: "existing", Kubeconfig: "nothing"}.Plan()
	if err == nil || KindOf(err) != KindNotRun {
		t.Errorf("a kubeconfig that is not there: %v, want that it could not be run", err)
	}
}

// A run that only shows a cluster is not judged. It says why before it begins.
func TestARunThatIsHeldEarlyOrWithoutALoadIsNotJudged(t *testing.T) {
	for want, s := range map[string]Spec{
		"":                             {Keep: true},
		"no load was sent (--no-load)": {Keep: true, NoLoad: true},
		"the cluster was held after 3 of 3 steps, as it was then (--at)":                                   {Keep: true, At: new(3)},
		"no load was sent (--no-load), and the cluster was held after 0 of 3 steps, as it was then (--at)": {Keep: true, NoLoad: true, At: new(0)},
	} {
		s.Scenario = "quiet"
		p, err := s.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if got := p.describe().Unjudged; got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}

func TestTheDryRunShowsWhereTheClusterIsHeld(t *testing.T) {
	for at, want := range map[int]string{0: "Steps:\n" + heldHere + "\n   1. ", 2: "\n" + heldHere + "\n   3. "} {
		p, err := Spec{Scenario: "quiet", Keep: true, At: &at}.Plan()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := p.DryRun(t.Context(), &out); err != nil || strings.Count(out.String(), want) != 1 {
			t.Errorf("--at %d: error %v, %q is not in\n%s", at, err, want, out.String())
		}
	}
}

// A Plan has every default filled in, so that its command line repeats it even if the defaults
// change later.
func TestAPlanKnowsItsDefaults(t *testing.T) {
	for want, s := range map[string]Spec{
		"skewproof run quiet --backend local --subject builtin --from v1.36.3 --to v1.37.1 --etcd " + binaries.DefaultEtcd +
			" --servers 3 --qps 240 --seed 1": {Scenario: "quiet"},
		"skewproof run many-peers --backend sim --subject builtin --from v1.36.3 --to v1.37.1 --servers 50 --qps 240 --seed 0": {
			Scenario: "many-peers", Backend: "sim", Seed: new(uint64(0)), Out: "x",
		},
		"skewproof run quiet --backend kind --subject none --from v1.36.3 --to v1.37.1 --servers 3 --qps 240 --seed 1 --strict": {
			Scenario: "quiet", Backend: "kind", Subject: "none", Strict: true, Keep: true, NoLoad: true, At: new(1),
		},
		"skewproof run quiet --backend sim --subject builtin --from v1.36.3 --to v1.37.1 --servers 3 --qps 240 --soak 30m0s --seed 1": {
			Scenario: "quiet", Backend: "sim", Soak: 30 * time.Minute,
		},
	} {
		p, err := s.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Spec.Command(); got != want || p.describe().Reproduce != want {
			t.Errorf("%+v is repeated by\n%s, want\n%s", s, got, want)
		}
		again, err := p.Spec.Plan()
		if err != nil || again.Spec.Command() != want {
			t.Errorf("planned again, %s gives %v", want, err)
		}
	}
	p, err := Spec{Scenario: "quiet", Backend: "existing", Kubeconfig: twoServers}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if p.Spec.QPS != GentleQPS || p.Spec.Servers != 2 || p.Spec.Subject != SubjectExternal {
		t.Errorf("servers that run already: %+v", p.Spec)
	}
	if want := "skewproof run quiet --backend existing --kubeconfig " + twoServers + " --contexts a,b --qps 60 --seed 1"; reproduced(t, p) != want {
		t.Errorf("repeated by %s, want %s", reproduced(t, p), want)
	}
}

// reproduced is the command that repeats a run on two servers whose versions are known.
func reproduced(t *testing.T, p *Plan) string {
	t.Helper()
	p.Schedule.Servers = []scenario.Server{{Name: "a", Version: "v1.36.3"}, {Name: "b", Version: "v1.37.1"}}
	return p.describe().Reproduce
}

// A custom plan is repeated by the command that makes it. The command has no flags for values that
// the plan contains.
func TestAPlanOfOnesOwnIsRepeatedByItsCommand(t *testing.T) {
	quiet, err := Spec{Scenario: "quiet"}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	s := quiet.Spec
	s.Scenario, s.Own = "", &Own{Name: "replay", About: []string{"NoLoop"}, Plan: quiet.Schedule, Command: []string{"replay", "a file", "--lenient"}}
	p, err := s.Plan()
	if err != nil {
		t.Fatal(err)
	}
	run := p.describe()
	if want := "skewproof replay 'a file' --lenient --backend local --etcd " + binaries.DefaultEtcd + " --qps 240"; run.Reproduce != want {
		t.Errorf("repeated by %s, want %s", run.Reproduce, want)
	}
	if run.Scenario != "replay" || !slices.Equal(run.About, []string{"NoLoop"}) || len(run.Servers) != 3 || len(run.Servers[0].Args) == 0 {
		t.Errorf("described as %+v", run)
	}
}

// The environment may name many binaries. The command line names those that the run uses. A flag
// overrides the environment.
func TestBinariesOfTheEnvironment(t *testing.T) {
	t.Setenv(binaries.OverrideEnv, "kube-apiserver@v1.36.3=/env/old,kube-apiserver@v1.37.1=/env/new,kube-apiserver@v1.35.4=/env/other")
	s := Spec{From: "v1.36.3", To: "v1.37.1", Etcd: "v3.6.8", Binaries: override(t, "kube-apiserver@v1.36.3=/opt/my own/kube-apiserver")}
	if err := s.takeEnvironment(); err != nil {
		t.Fatal(err)
	}
	want := "--binary 'kube-apiserver@v1.36.3=/opt/my own/kube-apiserver' --binary kube-apiserver@v1.37.1=/env/new"
	if got := s.Command(); !strings.Contains(got, want) || strings.Contains(got, "v1.35.4") {
		t.Errorf("%s, want %s in it", got, want)
	}
	t.Setenv(binaries.OverrideEnv, "nonsense")
	if err := s.takeEnvironment(); err == nil || KindOf(err) != KindUsage || !strings.Contains(err.Error(), binaries.OverrideEnv) {
		t.Errorf("nonsense in the environment: %v", err)
	}
}

// This can be tested without any process: every backend that starts its own servers shows what it
// would start, and starts nothing.
func TestDryRunsStartNothing(t *testing.T) {
	existing, err := Spec{Scenario: "quiet", Backend: "existing", Kubeconfig: twoServers}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for backend, want := range map[string]string{"local": "kube-apiserver a, v1.36.3, on host a", "kind": "kind: Cluster", "sim": "a, v1.36.3, with upstream-1.36"} {
		p, err := Spec{Scenario: "rolling-upgrade", Backend: backend}.Plan()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := p.DryRun(t.Context(), &out); err != nil || !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "replace b by v1.37.1") {
			t.Errorf("%s: error %v:\n%s", backend, err, &out)
		}
	}
	if err := existing.DryRun(t.Context(), os.Stderr); err == nil || !strings.Contains(err.Error(), "--dry-run means nothing") {
		t.Errorf("a dry run of servers that run already: %v", err)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("they left %v, error %v", left, err)
	}
}

// A run on servers that skewproof did not start tests only what can be judged from outside, and
// names everything else. Every invariant declares whether it can be judged from outside. If it
// declares nothing, it is not judged.
func TestWhatCanBeSeenFromOutside(t *testing.T) {
	b := &existingBackend{}
	p := &Plan{Scenario: scenario.Scenario{Name: "quiet", About: []string{"NoFalseNotFound", "NoLoop", "LegacyListsOwn", "NoCrash", "NoSuchInvariant"}},
		Spec: Spec{Seed: new(uint64(1))}, backend: b}
	run := p.describe()
	if want := []string{"NoFalseNotFound", "LegacyListsOwn", "NoSuchInvariant"}; !slices.Equal(run.About, want) { // an unknown name makes it inconclusive
		t.Errorf("the run is about %q, want %q", run.About, want)
	}
	for _, i := range invariant.All() {
		if i.Outside == slices.Contains(b.unseen, i.Name) {
			t.Errorf("%s: to be judged from outside: %v; not judged: %q", i.Name, i.Outside, b.unseen)
		}
	}
}

func TestPresetsOfVersions(t *testing.T) {
	for version, want := range map[string]string{
		"v1.30.14": "alpha-1.28", "v1.34.4": "upstream-1.34", "v1.35.0": "upstream-1.35", "v1.36.3": "upstream-1.36", "v1.37.1": "upstream-1.37",
	} {
		if p, err := sim.PresetOf(version); err != nil || p.Name != want {
			t.Errorf("%s: %s, error %v; want %s", version, p.Name, err, want)
		}
	}
	for _, version := range []string{"v1.27.0", "v1.33.0", "v1.99.0"} {
		if p, err := sim.PresetOf(version); err == nil {
			t.Errorf("%s behaves like %s, which was not recorded", version, p.Name)
		}
	}
}

// Only a run of the subject on which its scenario must fail is a negative control.
func TestANegativeControlSaysWhatItMustViolate(t *testing.T) {
	for subject, want := range map[string]bool{"none": true, "builtin": false, "reference": false} {
		p, err := Spec{Scenario: "garbage-collection", Subject: subject}.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if got := p.describe().Control; slices.Equal(got, []string{"OrphansCollected"}) != want || len(got) > 0 != want {
			t.Errorf("%s must violate %v", subject, got)
		}
	}
}
