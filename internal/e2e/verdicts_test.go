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

// either stands for a pass or a fail, where it depends on the moment in which the subject is met; inconclusive it may not be.
const either invariant.Outcome = "pass or fail"

// verdicts checks that the report has the wanted verdicts, and that nothing is left open: every core invariant must be wanted.
func verdicts(t *testing.T, r reports.RunReport, want map[string]invariant.Outcome) {
	t.Helper()
	want = maps.Clone(want)
	for name, usual := range underGeneralLoad {
		if _, said := want[name]; !said {
			want[name] = usual
		}
	}
	for _, i := range r.Invariants {
		if _, ok := want[i.Name]; !ok && i.Grade == invariant.GradeCore {
			t.Errorf("%s: %s, and the test does not say what is wanted", i.Name, i.Verdict)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		v := verdict(t, r, name)
		if v.Verdict == want[name] || want[name] == either && v.Verdict != invariant.OutcomeInconclusive {
			continue
		}
		t.Errorf("%s: %s, want %s %s", name, v.Verdict, want[name], v.Reason)
		for _, e := range v.Evidence {
			t.Logf("%s, %d times: %s", name, e.Count, e.Sentence)
		}
	}
}

// underGeneralLoad is what the invariants come to that are about what only a profile of traffic asks for, and that no fault should break.
var underGeneralLoad = map[string]invariant.Outcome{
	"NoPeerIsLocal":   invariant.OutcomeInconclusive,
	"ListsAgree":      invariant.OutcomeInconclusive,
	"AnsweredInKind":  invariant.OutcomePass, // part of the general load speaks protobuf
	"AuthorizedAlike": invariant.OutcomePass, // one of its users may only read
}

// csiNodeStatus shows the one defect that needs no fault: requests are passed on by resource, and csinodes/status, which v1.37
// added to a resource that v1.36 has, is not (docs/findings.md).
const csiNodeStatus = "storage.k8s.io/v1/csinodes/status"

// onlyCSINodeStatus checks that these invariants are violated by that defect, and by nothing else.
func onlyCSINodeStatus(t *testing.T, r reports.RunReport, names ...string) {
	t.Helper()
	for _, name := range names {
		v := verdict(t, r, name)
		if len(v.Evidence) == 0 {
			t.Errorf("%s: no evidence, want the known defect to show", name)
		}
		if v.Kinds != len(v.Evidence) {
			t.Errorf("%s: the report shows %d of %d kinds of violations: what the others are about is not known", name, len(v.Evidence), v.Kinds)
		}
		for _, e := range v.Evidence {
			if !slices.Equal(e.Resources, []string{csiNodeStatus}) || e.ResourcesTotal != 1 {
				t.Errorf("%s, about %v (%d in all), want %s only: %s", name, e.Resources, e.ResourcesTotal, csiNodeStatus, e.Sentence)
			}
		}
	}
}

// moreThanCSINodeStatus checks that these invariants are violated by something that the known defect does not explain.
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
