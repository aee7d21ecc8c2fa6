package e2e

import (
	"maps"
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
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

// either stands for a pass or a fail, where the outcome depends on the state of the subject at that
// moment. It does not match inconclusive.
const either invariant.Outcome = "pass or fail"

// notFailed matches pass and inconclusive, for an invariant that compares only few requests of a
// short run.
const notFailed invariant.Outcome = "pass or inconclusive"

// verdicts checks that the report has the wanted verdicts: the usual verdicts, with the given ones
// in their place. Every core invariant must have a wanted verdict.
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
		if v.Outcome == want[name] || want[name] == either && v.Outcome != invariant.OutcomeInconclusive ||
			want[name] == notFailed && v.Outcome != invariant.OutcomeFail {
			continue
		}
		if want[name] != invariant.OutcomeFail && ofNoProxy(v) {
			t.Logf("%s: findings %v, %d times", name, v.Findings, v.Violations)
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

// ofNoProxy reports whether an invariant is violated only by what is not in the proxy, and what no
// proxy can prevent.
func ofNoProxy(v reports.Invariant) bool {
	beside := findings.For(scenario.SubjectReference)
	return v.Outcome == invariant.OutcomeFail && v.New == 0 && len(v.Findings) > 0 && !slices.ContainsFunc(v.Findings, func(number int) bool {
		return !slices.ContainsFunc(beside, func(f findings.Finding) bool { return f.Number == number })
	})
}

// lateKnowledge is a finding that appears whenever the machine is slow: other servers learn late
// about a server that takes long to start.
const lateKnowledge = 24

// usual has the outcomes of core invariants that no released version violates, if servers forward
// requests and the load is the general one. A test must give the outcomes of all other core
// invariants.
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
	"AnsweredInKind":           invariant.OutcomePass, // part of the general load is in protobuf
	"AnsweredInFull":           invariant.OutcomePass,
	"WatchesLast":              invariant.OutcomePass,         // part of the general load are watches of a few seconds
	"ObjectsAgree":             notFailed,                     // part of the reads of the general load are compared
	"NoPeerIsLocal":            invariant.OutcomeInconclusive, // only a profile of traffic sends the requests that these invariants are about
	"ListsAgree":               invariant.OutcomeInconclusive,
	"NoWrongfulDeletion":       invariant.OutcomeInconclusive, // the run has no controllers
	"NothingLeftBehind":        invariant.OutcomeInconclusive,
	"OrphansCollected":         invariant.OutcomeInconclusive,
	"DeletionEnds":             invariant.OutcomeInconclusive,
	"QuotaFollows":             invariant.OutcomeInconclusive,
	"NoLostEvents":             invariant.OutcomeInconclusive, // the run has no informers
	"NoFieldLost":              invariant.OutcomeInconclusive, // the run does not read etcd
	"MigrationsSucceed":        invariant.OutcomeInconclusive, // the run migrates nothing
	"Settles":                  invariant.OutcomeInconclusive, // the run has no workloads
	"OneLeader":                invariant.OutcomeInconclusive, // the run has no election
}

// upgraded has the outcomes of a rolling upgrade, on any backend.
var upgraded = map[string]invariant.Outcome{
	"NoFalseNotFound":          invariant.OutcomeFail,
	"UnavailableOnPeerFailure": invariant.OutcomeInconclusive, // no peer failed
	"DiscoveryAccessible":      invariant.OutcomeFail,
	"Converges":                invariant.OutcomePass, // after the last upgrade all versions are equal
}

// ignorant has the outcomes, on any backend, if a server answers 404 for resources that it could
// not learn in a partition.
var ignorant = map[string]invariant.Outcome{
	"NoFalseNotFound":          invariant.OutcomeFail,
	"UnavailableOnPeerFailure": invariant.OutcomeFail,
	"DiscoveryDeterministic":   invariant.OutcomeFail, // it learns at its next retry, long after the heal
	"DiscoveryComplete":        invariant.OutcomeFail,
	"DiscoveryAccessible":      invariant.OutcomeFail,
	"Converges":                invariant.OutcomeFail, // the versions stay mixed
}

// ignorantOnKind has the same outcomes on nodes. There they depend on when the next retry is due,
// and so on how long the kubelet takes to restart a server.
func ignorantOnKind() map[string]invariant.Outcome {
	want := maps.Clone(ignorant)
	want["DiscoveryDeterministic"], want["DiscoveryComplete"] = either, either
	return want
}

// csiNodeStatus is the one defect that appears without a fault. Requests are forwarded by resource.
// v1.37 added the subresource csinodes/status to a resource that v1.36 has, so this subresource is
// not forwarded (docs/findings.md).
const csiNodeStatus = "storage.k8s.io/v1/csinodes/status"

// onlyCSINodeStatus checks that only this defect, finding 2, violates these invariants.
// [lateKnowledge] may appear too.
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

// moreThanCSINodeStatus checks that these invariants are also violated by something that the known
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
