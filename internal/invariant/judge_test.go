package invariant

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/history"
)

// rich is a story in which every invariant has something to judge. If wrong is set, the story
// violates some of the invariants.
func rich(wrong bool, about ...string) *story {
	s := tell(about...)
	for i := range 8 {
		at := 20 + 2*float64(i)
		s.askEvery(at, at, "a", widgets, 200, sweep).askEvery(at, at, "b", widgets, 200, sweep).askEvery(at, at, "c", widgets, 200, sweep)
		s.ask(at, "a", gadgets, 200, sweep).ask(at, "c", gadgets, 200, sweep)
		s.ask(at, "b", gadgets, 200, sweep, by("reader")).hop("b", 0, 10, false, as("reader")).hop("a", 2, 8, true, as("reader"))
		s.ask(at, "b", gadgets, 201, verb("create"), by("admin")).hop("b", 0, 10, false, as("admin"), answering(201)).hop("a", 2, 8, true, as("admin"), answering(201))
		s.ask(at, "a", gadgets, 403, verb("delete"), by("reader"), forbidden).ask(at, "b", gadgets, 403, verb("delete"), by("reader"), forbidden)
		s.ask(at, "a", pods, 200, sweep).ask(at, "b", pods, 200, sweep).ask(at, "c", pods, 200, sweep)
		for _, server := range []string{"a", "b", "c"} {
			s.discover(at+0.5, server, "/apis", mergedDoc).discover(at+0.5, server, "/api", coreDoc).ask(at+0.5, server, ghosts, 404)
		}
	}
	s.step("cut b→a", 50, 51).cut("b", "a", 50, 90).askEvery(55, 80, "b", gadgets, 503).step("heal", 90, 91)
	s.distrust(history.DistrustServing, "c", "a", 92, 98).ask(94, "c", gadgets, 503).hop("c", 0, 10, false)
	for _, server := range []string{"a", "b", "c"} {
		s.askEvery(100, 190, server, gadgets, 200).askEvery(100, 190, server, widgets, 200)
		s.nopeer(110, server, "/apis", map[bool]history.Document{true: mergedDoc, false: doc("own", line(widgets))}[server == "a"])
		s.openapi(111, server, doc("described", versionOf(pods), versionOf(widgets), versionOf(gadgets)))
		s.lists(112, server, 300, 0).lists(113, server, 100, 300).ask(114, server, gadgets, 200, media("application/yaml", "application/yaml"))
		s.ask(115, server, gadgets, 200, watching(5), took(5.01)).ask(116, server, gadgets, 200, withContent(history.ContentWhole))
		s.legacy(117, server, "/apis", doc("legacy", versionOf(widgets), versionOf(gadgets)))
		s.ask(118, server, versionOf(gadgets).GVR, 200)
	}
	s.ask(119, "b", gadgets, 200, read(`"1" sha256:aa`, "")).hop("b", 0, 10, false, answering(200)).hop("a", 2, 8, true, answering(200))
	s.ask(119.1, "a", gadgets, 200, read(`"1" sha256:aa`, "")).hop("a", 0, 10, false, answering(200))
	s.told("a").lease("a", 2, 199, "10.0.0.a:6443").harmless().crowd(100, 190, 4, 0)
	s.metrics(195, "b", asSample(gadgets, 200, 100), asSample(gadgets, 201, 8))
	if wrong {
		s.harmful().metrics(196, "b", asSample(gadgets, 200, 7))
		s.told("b").lease("b", 2, 199, "10.0.0.a:6443")
		s.ask(136, "b", versionOf(gadgets).GVR, 404)
		s.ask(119.5, "b", gadgets, 200, read(`"1" sha256:bb`, "")).hop("b", 0, 10, false, answering(200)).hop("a", 2, 8, true, answering(200))
		s.ask(135, "b", gadgets, 200, verb("delete"), by("reader"))
		s.askEvery(140, 145, "b", gadgets, 404).askEvery(140, 145, "c", gadgets, 503).ask(60, "b", gadgets, 500)
		s.nopeer(130, "b", "/apis", mergedDoc).openapi(131, "b", doc("poorly-described", versionOf(pods))).lists(132, "c", 299, 0)
		s.ask(95, "c", gadgets, 200).hop("c", 0, 10, false).hop("a", 2, 8, true)
		s.ask(133, "b", gadgets, 200, media("application/yaml", ""))
		s.ask(134, "b", gadgets, 200, watching(5), took(1)).ask(134, "b", gadgets, 200, withContent(history.ContentBroken))
		s.legacy(134, "b", "/apis", doc("poor-legacy", versionOf(pods)))
		s.ask(150, "c", ghosts, 503).discover(160, "c", "/apis", reorderedDoc).discover(160, "a", "/apis", doc("poor", line(widgets)))
		s.ask(170, "b", gadgets, 200).hop("b", 0, 10, false).hop("c", 1, 9, true).hop("a", 2, 8, true)
		s.ask(173, "b", gadgets, 200).hop("b", 0, 10, false, answering(404)).hop("a", 2, 8, true, answering(200))
		s.ask(174, "b", gadgets, 405).ask(174, "b", widgets, 200, took(9))
		s.ask(175, "b", gadgets, 200, by("admin")).hop("b", 0, 10, false, as("admin")).hop("a", 2, 8, true, as("system:anonymous"))
		s.ask(178, "b", gadgets, 200).hop("b", 0, 10, false).hop("a", 2, 8, true, asking("query: without limit=5"))
		s.hop("a", 2, 8, true, asking("body")).hop("a", 2, 8, true, passedBy("b")).hop("a", 2, 8, true, passedBy("c"))
		s.discover(179, "b", "/apis", doc("disorderly", inGroup("flows", "v1beta1", "v1")...))
		s.ask(180, "b", gadgets, 201, verb("create")).hop("b", 0, 10, false, answering(201)).hop("a", 1, 4, true, answering(201)).hop("a", 5, 9, true, answering(201))
	}
	return s.rewritten(wrong).counted(wrong).informed(wrong).migrated(wrong).grown(wrong).led(wrong)
}

func names() []string {
	var out []string
	for _, i := range All() {
		out = append(out, i.Name)
	}
	return out
}

func outcomes(h *history.History) map[string]Outcome {
	out := map[string]Outcome{}
	for _, v := range Judge(h) {
		out[v.Name] = v.Outcome
	}
	return out
}

func TestCatalogue(t *testing.T) {
	want := []string{
		"NoFalseNotFound", "UnavailableOnPeerFailure", "TrueNotFound", "ProxiedSucceed", "NoLoop", "OnlyTrustedPeers", "IdentityPreserved", "AuthorizedAlike",
		"AnsweredAlike", "PassedOnUnchanged", "AuditedAlike", "CountedAlike", "WritesOnce", "DiscoveryDeterministic", "DiscoveryComplete", "VersionOrder", "DiscoveryAccessible", "NoPeerIsLocal", "ListsAgree",
		"ObjectsAgree", "AnsweredInKind", "AnsweredInFull", "WatchesLast", "Isolation", "OpenAPIDescribes", "LegacyListsOwn",
		"GroupVersionsDescribed", "ConfigurationTakesEffect", "Available", "NoCrash", "Converges",
		"NoWrongfulDeletion", "NothingLeftBehind", "OrphansCollected", "DeletionEnds", "QuotaFollows", "NoLostEvents", "NoFieldLost", "MigrationsSucceed", "Settles", "OneLeader",
	}
	if !slices.Equal(names(), want) {
		t.Errorf("catalogue %v, want %v", names(), want)
	}
	for _, i := range All() {
		if i.Sentence == "" || i.Source == "" || (i.Grade == GradeExtended) != slices.Contains([]string{"AuditedAlike", "CountedAlike", "Isolation", "Available", "OpenAPIDescribes", "LegacyListsOwn", "GroupVersionsDescribed", "OneLeader"}, i.Name) {
			t.Errorf("%s: grade %q, sentence %q, source %q", i.Name, i.Grade, i.Sentence, i.Source)
		}
	}
}

func TestRichStories(t *testing.T) {
	for name, got := range outcomes(rich(false, names()...).h) {
		if got != OutcomePass {
			t.Errorf("right story: %s is %s: %s", name, got, verdictOf(t, rich(false, names()...).h, name).Reason)
		}
	}
	for name, got := range outcomes(rich(true, names()...).h) {
		if want := map[string]Outcome{"NoCrash": OutcomePass}[name]; want == "" && got != OutcomeFail {
			t.Errorf("wrong story: %s is %s", name, got)
		}
	}
}

// A run that sent nothing would pass because it saw nothing. A run that left its faults active
// would fail because the records of the faults are missing.
func TestARunThatIsNotJudgedNeitherPassesNorFails(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		h := rich(wrong, names()...).h
		h.Run.Unjudged = "no load was sent"
		verdicts := Judge(h)
		if len(verdicts) != len(All()) {
			t.Errorf("%d verdicts, want %d", len(verdicts), len(All()))
		}
		for _, v := range verdicts {
			if v.Outcome != OutcomeInconclusive || v.Reason != "not judged: no load was sent" || v.Violations > 0 || !v.About || v.Sentence == "" {
				t.Errorf("%s: %s, %d violations, %q", v.Name, v.Outcome, v.Violations, v.Reason)
			}
		}
		for _, strict := range []bool{false, true} {
			if got := Overall(verdicts, strict, nil).Outcome(); got != OutcomeInconclusive {
				t.Errorf("strict %v: %s", strict, got)
			}
		}
	}
}

// untimed are the invariants that no fault can break.
var untimed = []string{"NoLoop", "IdentityPreserved", "PassedOnUnchanged", "AuditedAlike", "CountedAlike", "WritesOnce", "NoPeerIsLocal", "ObjectsAgree", "AnsweredInKind", "NoCrash", "OnlyTrustedPeers", "AnsweredInFull", "NoWrongfulDeletion", "NothingLeftBehind", "NoLostEvents", "NoFieldLost"}

// The faults of links are recorded at the end of a run. Without these records, everything that the
// faults excuse looks like a violation.
func TestWithoutAnEndNothingIsAViolationThatAFaultMayExplain(t *testing.T) {
	s := rich(false, names()...)
	s.h.Faults, s.h.End = nil, history.End{}
	doubted := false
	for _, v := range Judge(s.h) {
		if v.Outcome != OutcomeInconclusive {
			t.Errorf("%s is %s: %s", v.Name, v.Outcome, v.Reason)
		}
		doubted = doubted || strings.Contains(v.Reason, "may come from faults that are not in the history")
	}
	if !doubted {
		t.Error("no verdict mentions the missing record")
	}
}

func TestCutShortHistoryNeverPasses(t *testing.T) {
	for _, end := range []history.End{{}, {At: sec(200), Complete: true, Error: "step 3 failed"}} {
		for _, wrong := range []bool{false, true} {
			s := rich(wrong)
			before := outcomes(s.h)
			s.h.End = end
			for _, v := range Judge(s.h) {
				want := OutcomeInconclusive
				if before[v.Name] == OutcomeFail && (end.Complete || slices.Contains(untimed, v.Name)) {
					want = OutcomeFail
				}
				if v.Outcome != want || want == OutcomeInconclusive && v.Reason == "" {
					t.Errorf("end %+v: %s was %s, is %s (%s), want %s", end, v.Name, before[v.Name], v.Outcome, v.Reason, want)
				}
			}
			if got := Overall(Judge(s.h), false, nil).Outcome(); got == OutcomePass {
				t.Errorf("end %+v: overall %s", end, got)
			}
		}
	}
}

func TestVerdictsDoNotDependOnOrder(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		s := rich(wrong, names()...)
		want := ordered(Judge(s.h))
		rng := rand.New(rand.NewPCG(1, 2))
		for range 10 {
			shuffle(rng, s.h.Operations)
			shuffle(rng, s.h.Hops)
			shuffle(rng, s.h.Steps)
			shuffle(rng, s.h.Faults)
			shuffle(rng, s.h.Lifecycle)
			shuffle(rng, s.h.Served)
			shuffle(rng, s.h.Run.Servers)
			shuffle(rng, s.h.Objects)
			shuffle(rng, s.h.Requests)
			shuffle(rng, s.h.Deliveries)
			shuffle(rng, s.h.Counted)
			if got := ordered(Judge(s.h)); !reflect.DeepEqual(got, want) {
				t.Fatalf("verdicts changed with the order of records (-want +got):\n%s", cmp.Diff(want, got))
			}
		}
	}
}

// ordered returns the verdicts with copies of their wrong operations, sorted by ID: the verdicts
// themselves point into the history, whose order a test changes.
func ordered(verdicts []Verdict) []Verdict {
	for i := range verdicts {
		var wrong []*history.Operation
		for _, o := range verdicts[i].Wrong {
			wrong = append(wrong, new(*o))
		}
		slices.SortFunc(wrong, func(a, b *history.Operation) int { return strings.Compare(a.ID, b.ID) })
		verdicts[i].Wrong = wrong
	}
	return verdicts
}

func shuffle[T any](rng *rand.Rand, s []T) {
	rng.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
}

func TestJudgeLeavesTheHistoryAlone(t *testing.T) {
	a, b := rich(true, names()...), rich(true, names()...)
	Judge(a.h)
	if !reflect.DeepEqual(a.h, b.h) {
		t.Error("the history was changed")
	}
}

func TestMorePassingOperationsHideNoFailure(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	s := rich(true, names()...)
	want := outcomes(s.h)
	for range 20 {
		for range 50 {
			server := []string{"a", "b", "c"}[rng.IntN(3)]
			at := 1 + rng.Float64()*190
			switch rng.IntN(3) {
			case 0:
				s.ask(at, server, widgets, 200)
			case 1:
				s.ask(at, server, ghosts, 404)
			default:
				s.discover(at, server, "/apis", mergedDoc)
			}
		}
		for name, got := range outcomes(s.h) {
			if want[name] == OutcomeFail && got != OutcomeFail {
				t.Fatalf("%s was a failure and is %s", name, got)
			}
		}
	}
}

// Without ground truth, no invariant that needs it passes or fails.
func TestWithoutGroundTruthNothingIsDecided(t *testing.T) {
	s := rich(true, names()...)
	s.h.Served = nil
	for _, v := range Judge(s.h) {
		switch v.Name {
		case "NoFalseNotFound", "UnavailableOnPeerFailure", "TrueNotFound", "DiscoveryComplete", "Available", "ProxiedSucceed", "GroupVersionsDescribed":
			if v.Outcome != OutcomeInconclusive {
				t.Errorf("%s is %s", v.Name, v.Outcome)
			}
		}
	}
}

func TestUnknownInvariant(t *testing.T) {
	vs := Judge(rich(false, "NoFalseNotFond", "NoFalseNotFond").h)
	last := vs[len(vs)-1]
	if len(vs) != len(All())+1 || last.Name != "NoFalseNotFond" || last.Outcome != OutcomeInconclusive || last.Reason == "" {
		t.Errorf("%d verdicts, the last %+v", len(vs), last)
	}
	if got := Overall(vs, false, nil).Outcome(); got != OutcomeInconclusive {
		t.Errorf("overall %s", got)
	}
}

func TestZeroBoundsAreTheDefaults(t *testing.T) {
	s := rich(true)
	s.h.Run.Bounds = history.DefaultBounds
	want := Judge(s.h)
	s.h.Run.Bounds = history.Bounds{}
	if got := Judge(s.h); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestOverall(t *testing.T) {
	v := func(g Grade, o Outcome, about bool) Verdict { return Verdict{Grade: g, Outcome: o, About: about} }
	const (
		core, extended = GradeCore, GradeExtended
		pass, fail     = OutcomePass, OutcomeFail
		inc            = OutcomeInconclusive
	)
	control := func(g Grade, o Outcome) Verdict { return Verdict{Grade: g, Outcome: o, Control: true} }
	for _, c := range []struct {
		name         string
		verdicts     []Verdict
		want, strict Outcome
	}{
		{"no verdict", nil, inc, inc},
		{"one passes", []Verdict{v(core, pass, true)}, pass, pass},
		{"nothing was exercised", []Verdict{v(core, inc, false)}, inc, inc},
		{"an invariant that it does not test may be inconclusive", []Verdict{v(core, pass, true), v(core, inc, false)}, pass, pass},
		{"an invariant that it tests may not", []Verdict{v(core, pass, false), v(core, inc, true)}, inc, inc},
		{"a failure counts even if it tests another invariant", []Verdict{v(core, inc, true), v(core, pass, true), v(core, fail, false)}, fail, fail},
		{"an extended failure", []Verdict{v(core, pass, true), v(extended, fail, true)}, pass, fail},
		{"an extended one is inconclusive", []Verdict{v(core, pass, true), v(extended, inc, true)}, pass, inc},
		{"a control fails as it must", []Verdict{control(core, fail), v(core, pass, true)}, fail, fail},
		{"a control does not fail, and another invariant does", []Verdict{control(core, inc), v(core, fail, true)}, inc, inc},
		{"a control fails in part", []Verdict{control(core, fail), control(extended, inc)}, inc, inc},
		{"only an extended one passes", []Verdict{v(core, inc, false), v(extended, pass, true)}, inc, pass},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Overall(c.verdicts, false, nil).Outcome(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if got := Overall(c.verdicts, true, nil).Outcome(); got != c.strict {
				t.Errorf("strict: %s, want %s", got, c.strict)
			}
		})
	}
}

// A negative control shows that a scenario can fail. If it does not fail, it shows nothing.
func TestANegativeControlMustFail(t *testing.T) {
	const name = "NoFalseNotFound"
	for _, c := range []struct {
		why           string
		control       []string
		status        int
		asks          bool
		want, overall Outcome
		unshown       bool
	}{
		{"no control, and it holds", nil, 200, true, OutcomePass, OutcomePass, false},
		{"no control, and it is violated", nil, 404, true, OutcomeFail, OutcomeFail, false},
		{"it is violated as it must be", []string{name}, 404, true, OutcomeFail, OutcomeFail, false},
		{"it holds", []string{name}, 200, true, OutcomeInconclusive, OutcomeInconclusive, true},
		{"nothing tests it", []string{name}, 200, false, OutcomeInconclusive, OutcomeInconclusive, false},
		{"another one must be violated", []string{"NoCrash"}, 404, true, OutcomeFail, OutcomeInconclusive, false},
	} {
		s := tell()
		s.h.Run.Control = c.control
		if c.asks {
			s.askEvery(50, 60, "b", gadgets, c.status)
		}
		v := verdictOf(t, s.h, name)
		if v.Outcome != c.want || v.Unshown != c.unshown || strings.Contains(v.Reason, "negative control") != c.unshown {
			t.Errorf("%s: %s, unshown is %t: %s", c.why, v.Outcome, v.Unshown, v.Reason)
		}
		if got := Overall(Judge(s.h), false, nil).Outcome(); got != c.overall {
			t.Errorf("%s: the run is %s, want %s", c.why, got, c.overall)
		}
	}
}
