package e2e

import (
	"maps"
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
)

func exits(t *testing.T, r result, code int) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
}

func verdict(t *testing.T, r reports.RunReport, name string) reports.Invariant {
	t.Helper()
	for _, i := range r.Invariants {
		if i.Name == name {
			return i
		}
	}
	t.Fatalf("the report has no invariant %s", name)
	return reports.Invariant{}
}

// either stands for a pass or a fail, where it depends on the moment in which the subject is met;
// inconclusive it may not be.
const either invariant.Outcome = "pass or fail"

// verdicts checks that the report has the wanted verdicts, which are the usual ones but for those
// given, and that nothing is left open: every core invariant must be wanted.
func verdicts(t *testing.T, r reports.RunReport, but map[string]invariant.Outcome) {
	t.Helper()
	want := maps.Clone(usual)
	maps.Copy(want, but)
	for _, i := range r.Invariants {
		if _, ok := want[i.Name]; !ok && i.Grade == invariant.GradeCore {
			t.Errorf("%s: %s, and the test does not say what is wanted", i.Name, i.Outcome)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		v := verdict(t, r, name)
		if v.Outcome == want[name] || want[name] == either && v.Outcome != invariant.OutcomeInconclusive {
			continue
		}
		if want[name] == invariant.OutcomePass && v.Outcome == invariant.OutcomeFail && v.New == 0 && slices.Equal(v.Findings, []int{lateKnowledge}) {
			t.Logf("%s: finding %d, %d times", name, lateKnowledge, v.Violations)
			continue
		}
		t.Errorf("%s: %s, want %s %s", name, v.Outcome, want[name], v.Reason)
		for _, e := range v.Evidence {
			t.Logf("%s, %d times: %s", name, e.Count, e.Sentence)
		}
	}
}

// lateKnowledge is the finding that shows by the slowness of the machine alone: a server that takes
// long to start is heard of late.
const lateKnowledge = 24

// usual is what core invariants come to that no released version violates where servers pass
// requests on under the general load. The others are about what a test has to say.
var usual = map[string]invariant.Outcome{
	"TrueNotFound":             invariant.OutcomePass,
	"ProxiedSucceed":           invariant.OutcomePass, // while nothing happens
	"NoLoop":                   invariant.OutcomePass,
	"OnlyTrustedPeers":         invariant.OutcomeInconclusive, // all certificates are in order
	"IdentityPreserved":        invariant.OutcomePass,
	"AuthorizedAlike":          invariant.OutcomePass, // one of the load's users may only read
	"AnsweredAlike":            invariant.OutcomePass,
	"PassedOnUnchanged":        invariant.OutcomePass,
	"WritesOnce":               invariant.OutcomePass,
	"DiscoveryDeterministic":   invariant.OutcomePass,
	"DiscoveryComplete":        invariant.OutcomePass,
	"VersionOrder":             invariant.OutcomePass,
	"ConfigurationTakesEffect": invariant.OutcomePass,
	"NoCrash":                  invariant.OutcomePass,
	"AnsweredInKind":           invariant.OutcomePass, // part of the general load speaks protobuf
	"AnsweredInFull":           invariant.OutcomePass,
	"WatchesLast":              invariant.OutcomePass,         // part of it are watches of a few seconds
	"NoPeerIsLocal":            invariant.OutcomeInconclusive, // only a profile of traffic asks for what these are about
	"ListsAgree":               invariant.OutcomeInconclusive,
	"NoWrongfulDeletion":       invariant.OutcomeInconclusive, // there are no controllers
	"NothingLeftBehind":        invariant.OutcomeInconclusive,
	"OrphansCollected":         invariant.OutcomeInconclusive,
	"DeletionEnds":             invariant.OutcomeInconclusive,
	"QuotaFollows":             invariant.OutcomeInconclusive,
	"NoLostEvents":             invariant.OutcomeInconclusive, // there are no informers
	"NoFieldLost":              invariant.OutcomeInconclusive, // etcd is not read
	"MigrationsSucceed":        invariant.OutcomeInconclusive, // nothing is migrated
	"OneLeader":                invariant.OutcomeInconclusive, // there is no election
}

// upgraded is what a rolling upgrade comes to, on whatever it is run.
var upgraded = map[string]invariant.Outcome{
	"NoFalseNotFound":          invariant.OutcomeFail,
	"UnavailableOnPeerFailure": invariant.OutcomeInconclusive, // no peer failed
	"DiscoveryAccessible":      invariant.OutcomeFail,
	"Converges":                invariant.OutcomePass, // after the last upgrade nothing is skewed
}

// ignorant is what it comes to, on whatever it is run, that a server takes for absent what it could
// not learn in a partition.
var ignorant = map[string]invariant.Outcome{
	"NoFalseNotFound":          invariant.OutcomeFail,
	"UnavailableOnPeerFailure": invariant.OutcomeFail,
	"DiscoveryDeterministic":   invariant.OutcomeFail, // it learns when its next retry is due, long after the heal
	"DiscoveryComplete":        invariant.OutcomeFail,
	"DiscoveryAccessible":      invariant.OutcomeFail,
	"Converges":                invariant.OutcomeFail, // the versions stay mixed
}

// ignorantOnKind is the same on nodes, where it depends on how long the kubelet takes to restart a
// server when the next retry is due.
func ignorantOnKind() map[string]invariant.Outcome {
	want := maps.Clone(ignorant)
	want["DiscoveryDeterministic"], want["DiscoveryComplete"] = either, either
	return want
}

// csiNodeStatus shows the one defect that needs no fault: requests are passed on by resource, and
// csinodes/status, which v1.37 added to a resource that v1.36 has, is not (docs/findings.md).
const csiNodeStatus = "storage.k8s.io/v1/csinodes/status"

// onlyCSINodeStatus checks that these invariants are violated by that defect, which is finding 2.
// [lateKnowledge] may show as well.
func onlyCSINodeStatus(t *testing.T, r reports.RunReport, names ...string) {
	t.Helper()
	for _, name := range names {
		v := verdict(t, r, name)
		if v.New > 0 {
			t.Errorf("%s: %d violations are NEW", name, v.New)
		}
		if !slices.Contains(v.Findings, 2) {
			t.Errorf("%s: findings %v, want 2 to show", name, v.Findings)
		}
		for _, e := range v.Evidence {
			switch {
			case e.Known != nil && e.Known.Finding == lateKnowledge:
				t.Logf("%s: finding %d: %s", name, lateKnowledge, e.Sentence)
			case !slices.Equal(e.Resources, []string{csiNodeStatus}) || e.ResourcesTotal != 1:
				t.Errorf("%s, about %v (%d in all), want %s only: %s", name, e.Resources, e.ResourcesTotal, csiNodeStatus, e.Sentence)
			}
		}
	}
}

// moreThanCSINodeStatus checks that these invariants are violated by something that the known
// defect does not explain.
func moreThanCSINodeStatus(t *testing.T, r reports.RunReport, names ...string) {
	t.Helper()
	for _, name := range names {
		if v := verdict(t, r, name); !slices.ContainsFunc(v.Evidence, isMoreThanCSINodeStatus) {
			t.Errorf("%s: no evidence is about anything but %s: %+v", name, csiNodeStatus, v.Evidence)
		}
	}
}

func isMoreThanCSINodeStatus(e reports.Evidence) bool {
	return slices.ContainsFunc(e.Resources, func(resource string) bool { return resource != csiNodeStatus })
}
