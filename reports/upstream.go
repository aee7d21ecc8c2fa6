package reports

import (
	"fmt"
	"slices"
	"strings"
)

// UpstreamKind identifies the results of Kubernetes' own tests, together with [APIVersion].
const UpstreamKind = "UpstreamTests"

// UpstreamJSON is the file of these results for programs. Their JUnit XML is [JUnitFile].
const UpstreamJSON = "upstream-e2e.json"

// UpstreamTests is the results of Kubernetes' own end-to-end tests on one path into a control plane
// of two versions. A failure counts only if the spec passes directly at the same server.
type UpstreamTests struct {
	TypeMeta
	// Metadata says what was tested, when, and by what.
	Metadata UpstreamMetadata `json:"metadata"`
	// Result is "failed" if a spec failed that passes directly, or an invariant was violated.
	// Otherwise it is "inconclusive" if something was not run, or proves nothing. Otherwise it is
	// "passed".
	Result Result `json:"result"`
	// Sentence says the result in one sentence.
	Sentence string `json:"sentence"`
	// Runs are the runs of the suite: directly, and on the path.
	Runs []UpstreamRun `json:"runs"`
	// Specs are the chosen specs, by name.
	Specs []UpstreamSpec `json:"specs"`
	// Left are the specs in focus that were not chosen, by reason.
	Left []UpstreamLeft `json:"left,omitempty"`
	Repetition
}

// These are the paths of Kubernetes' tests into the control plane.
const (
	PathDirect   = "direct"   // at the older server; no server has a proxy
	PathOld      = "old"      // at the older server, whose proxy is tested
	PathBalancer = "balancer" // at a load balancer over all servers, during a rolling upgrade
)

// UpstreamMetadata says what was tested, when, and by what.
type UpstreamMetadata struct {
	Made
	// Path is one of "direct", "old" and "balancer".
	Path string `json:"path"`
	// Subject says whose proxy is tested. It is "none" if the path is "direct".
	Subject string `json:"subject"`
	// From and To are the versions of the servers. Tests is the version of the tests.
	From  string `json:"from"`
	To    string `json:"to"`
	Tests string `json:"tests"`
	// Focus is the user's expression that chose the specs. If it is empty, all specs of the
	// selection were chosen.
	Focus string `json:"focus,omitempty"`
	// Baseline is the directory of an earlier suite. The results of the direct path come from it.
	Baseline string `json:"baseline,omitempty"`
	Tested
}

// UpstreamRun is one run of the tests.
type UpstreamRun struct {
	// Path and Subject are as in [UpstreamMetadata].
	Path    string `json:"path"`
	Subject string `json:"subject"`
	// Directory holds history, logs and report, relative to this file.
	Directory string `json:"directory"`
	// Violated are the invariants that the run violated and that count on its path.
	Violated []string `json:"violated,omitempty"`
	// Trouble says why the run is not complete. It is empty if the run is complete.
	Trouble string `json:"trouble,omitempty"`
	// DurationSeconds is how long the run took.
	DurationSeconds Seconds `json:"durationSeconds"`
}

// SpecOutcome is the outcome of a spec on one path.
type SpecOutcome string

// These are all outcomes of a spec.
const (
	SpecPassed  SpecOutcome = "passed"
	SpecFailed  SpecOutcome = "failed"
	SpecSkipped SpecOutcome = "skipped" // the spec skipped itself, with a reason
	SpecNotRun  SpecOutcome = "not run" // not run, or not to its end
)

// SpecClass says what a spec shows about the proxy.
type SpecClass string

// These are all classes of a spec.
const (
	ClassFailed   SpecClass = "failed"           // it failed, but passes directly: this counts
	ClassUnknown  SpecClass = "unknown"          // it failed, and it is not known whether it passes directly
	ClassNotRun   SpecClass = "not run"          // not run, or not to its end
	ClassDirectly SpecClass = "fails directly"   // it failed, and it also fails directly
	ClassExpected SpecClass = "expected failure" // it failed, and the selection says why
	ClassStale    SpecClass = "unexpected pass"
	ClassGained   SpecClass = "gained" // it passed, but fails directly
	ClassPassed   SpecClass = "passed"
	ClassSkipped  SpecClass = "skipped"
)

// SpecClasses lists all classes. Classes on which a reader has to act come first.
var SpecClasses = []SpecClass{
	ClassFailed, ClassUnknown, ClassNotRun, ClassStale, ClassExpected, ClassDirectly, ClassGained, ClassSkipped, ClassPassed,
}

// UpstreamSpec is one spec.
type UpstreamSpec struct {
	// Name is the full name of the spec.
	Name string `json:"name"`
	// Class follows from the other fields and the path.
	Class SpecClass `json:"class"`
	// Outcome is the outcome on the path. Direct is that on the direct path. Direct is empty if the
	// path is direct.
	Outcome SpecOutcome `json:"outcome"`
	Direct  SpecOutcome `json:"direct,omitempty"`
	// Expected says why the spec is expected to fail on the path. If it is empty, the spec is
	// expected to pass.
	Expected string `json:"expected,omitempty"`
	// Message and DirectMessage say why the spec failed, was skipped or was not run.
	Message       string `json:"message,omitempty"`
	DirectMessage string `json:"directMessage,omitempty"`
	// DurationSeconds is how long the spec took on the path.
	DurationSeconds Seconds `json:"durationSeconds"`
}

// UpstreamLeft is a rule of the selection that leaves specs out.
type UpstreamLeft struct {
	// Reason says why the rule leaves specs out. Specs is how many specs in focus it leaves out.
	Reason string `json:"reason"`
	Specs  int    `json:"specs"`
}

// classify returns the class of a spec on a path.
func (s UpstreamSpec) classify(path string) SpecClass {
	switch {
	case s.Outcome == SpecPassed && s.Expected != "":
		return ClassStale
	case s.Outcome == SpecPassed && s.Direct == SpecFailed:
		return ClassGained
	case s.Outcome == SpecPassed:
		return ClassPassed
	case s.Outcome == SpecSkipped:
		return ClassSkipped
	case s.Outcome != SpecFailed:
		return ClassNotRun
	case s.Expected != "":
		return ClassExpected
	case path == PathDirect || s.Direct == SpecFailed:
		return ClassDirectly
	case s.Direct == SpecPassed:
		return ClassFailed
	default:
		return ClassUnknown
	}
}

// Conclude computes what follows from the runs and the specs, and sorts the specs.
func (u *UpstreamTests) Conclude() {
	u.APIVersion, u.Kind = APIVersion, UpstreamKind
	slices.SortFunc(u.Specs, func(a, b UpstreamSpec) int { return strings.Compare(a.Name, b.Name) })
	for i := range u.Specs {
		u.Specs[i].Class = u.Specs[i].classify(u.Metadata.Path)
	}
	u.Result, u.Sentence = u.conclusion()
}

// Count is how many specs are of a class.
func (u UpstreamTests) Count(class SpecClass) (n int) {
	for _, s := range u.Specs {
		if s.Class == class {
			n++
		}
	}
	return n
}

// trouble says why the runs prove less than they should. violated are the invariants that the run
// on the tested path violated.
func (u UpstreamTests) trouble() (trouble string, violated []string) {
	for _, r := range u.Runs {
		if r.Trouble != "" && trouble == "" {
			trouble = fmt.Sprintf("the run on the path %s is not complete: %s", r.Path, firstLine(r.Trouble))
		}
		if r.Path == u.Metadata.Path {
			violated = append(violated, r.Violated...)
		}
	}
	return trouble, violated
}

func (u UpstreamTests) conclusion() (Result, string) {
	passed := u.Count(ClassPassed) + u.Count(ClassGained) + u.Count(ClassStale)
	failed, directly, unknown, notRun := u.Count(ClassFailed), u.Count(ClassDirectly), u.Count(ClassUnknown), u.Count(ClassNotRun)
	told := fmt.Sprintf("%d of %s passed", passed, counted(len(u.Specs), "spec"))
	told += alsoCounted(u.Count(ClassGained), "of them only by way of the proxy")
	if u.Metadata.Path == PathDirect {
		told += alsoCounted(directly, "failed")
	} else {
		told += alsoCounted(failed, "failed that pass directly") + alsoCounted(directly, "fail directly as well")
	}
	told += alsoCounted(unknown, "failed, and whether they pass directly is not known") +
		alsoCounted(u.Count(ClassExpected), "failed as expected") +
		alsoCounted(u.Count(ClassStale), "passed that were expected to fail") + alsoCounted(u.Count(ClassSkipped), "skipped themselves") +
		alsoCounted(notRun, "not run")
	trouble, violated := u.trouble()
	switch {
	case len(violated) > 0:
		return ResultFailed, "the run violated " + strings.Join(violated, ", ") + "; " + told
	case failed > 0:
		return ResultFailed, told
	case trouble != "":
		return ResultInconclusive, trouble + "; " + told
	case unknown+notRun > 0:
		return ResultInconclusive, told
	case passed == 0:
		return ResultInconclusive, told + "; so nothing is proved"
	case directly > passed:
		return ResultInconclusive, told + "; where most specs fail directly, the control plane is broken, and nothing is proved"
	default:
		return ResultPassed, told
	}
}

// check refuses results that the renderings could not show truthfully.
func (u UpstreamTests) check() error {
	if !slices.Contains([]string{PathDirect, PathOld, PathBalancer}, u.Metadata.Path) {
		return fmt.Errorf("metadata.path %q is not direct, old or balancer", u.Metadata.Path)
	}
	outcomes := []SpecOutcome{SpecPassed, SpecFailed, SpecSkipped, SpecNotRun}
	for n, s := range u.Specs {
		switch {
		case !slices.Contains(outcomes, s.Outcome) || s.Direct != "" && !slices.Contains(outcomes, s.Direct):
			return fmt.Errorf("specs[%d] has the outcome %q, directly %q: want passed, failed, skipped or not run", n, s.Outcome, s.Direct)
		case n > 0 && s.Name <= u.Specs[n-1].Name:
			return fmt.Errorf("specs[%d] %q is not after the one before it by name", n, s.Name)
		case s.Class != s.classify(u.Metadata.Path):
			return fmt.Errorf("specs[%d] is of the class %q, and its outcomes make it %q: the file was altered", n, s.Class,
				s.classify(u.Metadata.Path))
		}
	}
	if result, _ := u.conclusion(); u.Result != result {
		return fmt.Errorf("result is %q, and its specs make it %q: the file was altered", u.Result, result)
	}
	return nil
}

var upstreamTests = readable[UpstreamTests]{
	"the results of Kubernetes' tests", UpstreamKind, "run 'skewproof upstream-e2e' again to write new ones", false, UpstreamTests.check,
}

// ReadUpstream reads the results of Kubernetes' tests. It refuses any other document, unknown
// fields and a result that does not follow from the specs. The error names the file and what is
// wrong with it.
func ReadUpstream(path string) (UpstreamTests, error) { return upstreamTests.read(path) }
