package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
)

// In a cluster of one version nothing can go wrong, so every failure here is a defect of the
// harness.
func TestQuietClusterOfOneVersion(t *testing.T) {
	r, report := runScenario(t, "quiet", "--from", "v1.37.1", "--to", "v1.37.1", "--strict")
	exits(t, r, pass)
	verdicts(t, report, map[string]invariant.Outcome{
		"NoFalseNotFound":          invariant.OutcomePass,
		"UnavailableOnPeerFailure": invariant.OutcomeInconclusive, // no peer failed
		"ProxiedSucceed":           invariant.OutcomeInconclusive,
		"NoLoop":                   invariant.OutcomeInconclusive, // nothing was passed on
		"IdentityPreserved":        invariant.OutcomeInconclusive,
		"PassedOnUnchanged":        invariant.OutcomeInconclusive,
		"AnsweredAlike":            invariant.OutcomeInconclusive,
		"WritesOnce":               invariant.OutcomeInconclusive,
		"WatchesLast":              invariant.OutcomeInconclusive,
		"DiscoveryAccessible":      invariant.OutcomePass,
		"Available":                invariant.OutcomePass,
		"Converges":                invariant.OutcomePass,
	})
	judgedAgain(t, r)
}

// judgedAgain checks that a saved run, judged and rendered again, gives the same reports byte for
// byte.
func judgedAgain(t *testing.T, r result) {
	t.Helper()
	for _, command := range []string{"judge", "report"} {
		before := readReports(t, r.dir)
		again := run(t, command, r.dir, "--strict")
		if command == "report" {
			again = run(t, command, r.dir)
		}
		if again.code != r.code {
			t.Errorf("%s: exit code %d, want %d; output:\n%s", command, again.code, r.code, again.output)
		}
		for name, content := range readReports(t, r.dir) {
			if !bytes.Equal(content, before[name]) {
				t.Errorf("%s changed %s", command, name)
			}
		}
	}
}

func readReports(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, name := range []string{reports.HTMLFile, reports.JSONFile, reports.JUnitFile} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = content
	}
	return all
}

// A load that cannot prove anything must not pass. The report must name the figures that were too
// small.
func TestTooLittlePressureProvesNothing(t *testing.T) {
	r, report := scenarioAlone(t, "quiet", "--from", "v1.37.1", "--to", "v1.37.1", "--qps", "5", "--servers", "2")
	exits(t, r, inconclusive)
	for _, i := range report.Invariants {
		if i.Outcome == invariant.OutcomeFail {
			t.Errorf("%s: fail, want none to", i.Name)
		}
	}
	v := verdict(t, report, "TrueNotFound")
	figures := regexp.MustCompile(`too little pressure: [0-9]+ of at least 50 operations on resources that no server serves`)
	if v.Outcome != invariant.OutcomeInconclusive || !figures.MatchString(v.Reason) {
		t.Errorf("TrueNotFound: %s (%s), want inconclusive, with a reason like %q", v.Outcome, v.Reason, figures)
	}
	if !strings.Contains(r.output, "too little pressure") {
		t.Error("the summary does not say that there was too little pressure")
	}
}

// This is the negative control: with the proxy switched off, the harness must see the failures that
// the proxy prevents.
func TestRollingUpgradeWithoutTheProxy(t *testing.T) {
	onlyWithAll(t)
	r, report := runScenario(t, "rolling-upgrade", "--subject", "none")
	exits(t, r, fail)
	verdicts(t, report, map[string]invariant.Outcome{
		"NoFalseNotFound":          invariant.OutcomeFail,
		"UnavailableOnPeerFailure": invariant.OutcomeInconclusive, // no peer failed
		"ProxiedSucceed":           invariant.OutcomeInconclusive,
		"NoLoop":                   invariant.OutcomeInconclusive, // without a proxy no server forwards a request
		"IdentityPreserved":        invariant.OutcomeInconclusive,
		"PassedOnUnchanged":        invariant.OutcomeInconclusive,
		"AnsweredAlike":            invariant.OutcomeInconclusive,
		"WritesOnce":               invariant.OutcomeInconclusive,
		"WatchesLast":              invariant.OutcomeInconclusive,
		"DiscoveryDeterministic":   invariant.OutcomeFail,
		"DiscoveryComplete":        invariant.OutcomeFail,
		"DiscoveryAccessible":      invariant.OutcomeFail,
		"Converges":                invariant.OutcomePass, // after the last upgrade nothing is skewed
	})
	moreThanCSINodeStatus(t, report, "NoFalseNotFound", "DiscoveryAccessible")
}

func TestRollingUpgrade(t *testing.T) {
	r, report := runScenario(t, "rolling-upgrade")
	exits(t, r, fail)
	verdicts(t, report, upgraded)
	onlyCSINodeStatus(t, report, "NoFalseNotFound", "DiscoveryAccessible")
	if got := report.Metadata.Operations; got < 5000 {
		t.Errorf("%d operations, want at least 5000", got)
	}
}

func TestPeerPartition(t *testing.T) {
	onlyWithAll(t)
	r, report := runScenario(t, "peer-partition")
	exits(t, r, fail)
	verdicts(t, report, map[string]invariant.Outcome{
		"NoFalseNotFound":          invariant.OutcomeFail,
		"UnavailableOnPeerFailure": invariant.OutcomeFail,
		"DiscoveryAccessible":      invariant.OutcomeFail,
		"Available":                invariant.OutcomeFail,
		"Converges":                invariant.OutcomeFail, // the versions stay mixed
	})
	onlyCSINodeStatus(t, report, "NoFalseNotFound", "UnavailableOnPeerFailure", "DiscoveryAccessible", "Converges")
	v := verdict(t, report, "UnavailableOnPeerFailure")
	if v.Checked < 100 {
		t.Errorf("UnavailableOnPeerFailure judged %d requests, want at least 100", v.Checked)
	}
	for _, e := range v.Evidence {
		if !strings.HasPrefix(e.Cause, "404 rather than 503") {
			t.Errorf("UnavailableOnPeerFailure: %s, want 404 rather than 503 to be all there is", e.Cause)
		}
	}
	noFailover(t, report)
	if len(report.Faults) != 2 {
		t.Fatalf("%d faults, want the two halves of a partition", len(report.Faults))
	}
	for _, f := range report.Faults {
		if !f.Evidence.Effective {
			t.Errorf("fault %d, %s, had no effect", f.ID, f.Detail)
		}
	}
}

func TestPeerCrashWithAlternative(t *testing.T) {
	onlyWithAll(t)
	r, report := runScenario(t, "peer-crash-with-alternative")
	exits(t, r, fail)
	verdicts(t, report, map[string]invariant.Outcome{
		"NoFalseNotFound":          invariant.OutcomeFail,
		"UnavailableOnPeerFailure": invariant.OutcomeInconclusive, // b could serve all resources of a
		"DiscoveryAccessible":      invariant.OutcomeFail,
		"Available":                invariant.OutcomeFail, // c continues to send requests to a
		"NoCrash":                  invariant.OutcomePass, // a was killed by a step, and did not crash
		"Converges":                invariant.OutcomeFail, // the versions stay mixed
	})
	onlyCSINodeStatus(t, report, "NoFalseNotFound", "DiscoveryAccessible", "Converges")
	effective(t, report, "kill")
}

func TestPeerPause(t *testing.T) {
	onlyWithAll(t)
	r, report := runScenario(t, "peer-pause")
	exits(t, r, fail)
	verdicts(t, report, map[string]invariant.Outcome{
		"NoFalseNotFound":          invariant.OutcomeFail,
		"UnavailableOnPeerFailure": invariant.OutcomeFail,
		"DiscoveryAccessible":      invariant.OutcomeFail,
		"Converges":                invariant.OutcomeFail, // the versions stay mixed
	})
	onlyCSINodeStatus(t, report, "NoFalseNotFound", "DiscoveryAccessible", "Converges")
	if v := verdict(t, report, "UnavailableOnPeerFailure"); !slices.ContainsFunc(v.Evidence, func(e reports.Evidence) bool {
		return strings.Contains(e.Sentence, "gave no answer") && strings.Contains(e.Sentence, "a paused since")
	}) {
		t.Errorf("no evidence of a request that was left without an answer while a was paused: %+v", v.Evidence)
	}
	effective(t, report, "pause")
}

// effective checks that the report has exactly this fault, and that the fault had an effect.
func effective(t *testing.T, report reports.RunReport, kind string) {
	t.Helper()
	if len(report.Faults) != 1 || report.Faults[0].Kind != kind || !report.Faults[0].Evidence.Effective {
		t.Errorf("faults %+v, want one %s that had an effect", report.Faults, kind)
	}
}

// noFailover checks that the run saw this: a, cut off from b, forwarded a request to b that c could
// have served (docs/findings.md).
func noFailover(t *testing.T, report reports.RunReport) {
	t.Helper()
	v := verdict(t, report, "Available")
	for _, e := range v.Evidence {
		if e.Asked == "a" && strings.Contains(e.Sentence, "cut a→b") && strings.Contains(e.Sentence, "c (v1.36.3) serves it") {
			return
		}
	}
	t.Errorf("Available, %s: no evidence of a request that c could have served: %+v", v.Outcome, v.Evidence)
}

// A server that starts while it cannot reach a peer reports ready. It answers 404 for the resources
// that it could not learn.
func TestStartupDuringPartition(t *testing.T) {
	onlyWithAll(t)
	r, report := runScenario(t, "startup-during-partition")
	exits(t, r, fail)
	verdicts(t, report, ignorant)
	effective(t, report, "cut")
}

// v1.34 does not get that far: it crashes after the failed fetch, at every start
// (docs/findings.md). The test of NoCrash uses this real crash.
func TestStartupDuringPartitionEndsV134(t *testing.T) {
	onlyWithAll(t)
	needsCluster(t)
	needsVersions(t, oldPair.from, oldPair.to)
	r, report := runScenario(t, "startup-during-partition", "--from", oldPair.from, "--to", oldPair.to)
	exits(t, r, fail)
	v := verdict(t, report, "NoCrash")
	if v.Outcome != invariant.OutcomeFail || !slices.ContainsFunc(v.Evidence, func(e reports.Evidence) bool {
		return strings.Contains(e.Sentence, "nil pointer dereference")
	}) {
		t.Errorf("NoCrash: %s, %+v; want a failure that names the nil pointer", v.Outcome, v.Evidence)
	}
}

// The harness was first built to show this defect: v1.37.1 forgets a peer that it cannot reach when
// another peer restarts.
func TestRestartDuringPartition(t *testing.T) {
	r, report := runScenario(t, "restart-during-partition")
	exits(t, r, fail)
	verdicts(t, report, ignorant)
	for _, name := range []string{"NoFalseNotFound", "UnavailableOnPeerFailure"} {
		v := verdict(t, report, name)
		if !slices.ContainsFunc(v.Evidence, func(e reports.Evidence) bool {
			return e.Asked == "b" && strings.Contains(e.Sentence, "cut b→a") && isMoreThanCSINodeStatus(e)
		}) {
			t.Errorf("%s: no evidence says that b, cut off from a, answered 404 for whole resources: %+v", name, v.Evidence)
		}
	}
	page, err := os.ReadFile(filepath.Join(r.dir, reports.HTMLFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"restart c", "answered 404", "skewproof run restart-during-partition"} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the report's page does not say %q", want)
		}
	}
}

// Versions differ in more than kinds. Each of these scenarios shows one finding, and everything
// else that fails in it has a finding, too.
func TestWhatDiffersBesideKinds(t *testing.T) {
	onlyWithAll(t)
	for name, want := range map[string]struct {
		invariant string
		finding   int
	}{
		"drain":              {"NoFalseNotFound", 44},
		"hardened-discovery": {"NoFalseNotFound", 45},
		"node-identity":      {"AuthorizedAlike", 46},
		"field-skew":         {"Settles", 47},
	} {
		t.Run(name, func(t *testing.T) {
			r, report := runScenario(t, name, "--known")
			exits(t, r, pass)
			v := verdict(t, report, want.invariant)
			if v.Outcome != invariant.OutcomeFail || v.New > 0 || !slices.Contains(v.Findings, want.finding) {
				t.Errorf("%s: %s by the findings %v and %d NEW violations, want finding %d", v.Name, v.Outcome, v.Findings, v.New, want.finding)
			}
		})
	}
}
