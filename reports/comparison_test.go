package reports

import (
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

// compared compares the documents at two paths.
func compared(t *testing.T, a, b string) Comparison {
	t.Helper()
	c, err := comparedOr(t, a, b)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func comparedOr(t *testing.T, a, b string) (Comparison, error) {
	t.Helper()
	var sides [2]Compared
	for i, path := range []string{a, b} {
		var err error
		if sides[i], err = Open(path); err != nil {
			t.Fatal(err)
		}
	}
	return CompareAll(sides[0], sides[1])
}

// smallComparison has content for every part of a rendering.
func smallComparison() Comparison {
	sig := func(name, answer string) invariant.Signature {
		return invariant.Signature{Invariant: name, Mechanism: invariant.MechanismResource, Answer: answer}
	}
	a := judged("quiet", map[invariant.Signature]int{sig("NoFalseNotFound", "404 resource"): 5, sig("TrueNotFound", "500"): 2,
		sig("ListsAgree", "200"): 1}, "Converges")
	b := judged("quiet", map[invariant.Signature]int{sig("NoFalseNotFound", "404 resource"): 7, sig("Converges", "404 resource"): 3},
		"TrueNotFound")
	for n, r := range []*RunReport{&a, &b} {
		r.Metadata.Backend = "local"
		r.Counts = []Count{
			{Server: "a", Class: invariant.ClassSkewed, Status: 200, Count: 900 + n},
			{Server: "a", Class: invariant.ClassSkewed, Status: 404, Detail: "resource", Count: 20 - n},
			{Server: "a", Class: invariant.ClassSkewed, Status: 404, Detail: "object", Count: 40},
			{Server: "b", Class: invariant.ClassSkewed, Status: 503, Count: 30},
			{Server: "b", Class: invariant.ClassSkewed, Status: 0, Detail: "reset", Count: 10},
		}
		r.Latencies = []Latency{
			{Class: invariant.ClassServedHere, Way: invariant.WayAnswered, Requests: 4000, Measured: 3990, P50Seconds: 0.001, P99Seconds: 0.0042},
			{Class: invariant.ClassSkewed, Way: invariant.WayPassedOn, Requests: 940, Measured: 900, P50Seconds: Seconds(0.0031 + float64(n)/1000),
				P99Seconds: 0.0123},
		}
		r.Discovery = &MergedDiscovery{Everywhere: []string{"apps/v1/deployments", "batch/v1/jobs/status"}[n:]}
	}
	return Comparison{
		A: Compared{Path: "_out/before", Document: "conformance report", Facts: []string{"failed: 1 of 3 passed"},
			scenarios: []comparedScenario{{name: "quiet"}}},
		B: Compared{Path: "_out/after", Document: "conformance report", Facts: []string{"failed: 0 of 3 passed", "label: my patch | <b>"},
			scenarios: []comparedScenario{{name: "quiet"}}},
		Scenarios: []ScenarioDiff{
			{Name: "slow-peer", State: DiffNew, A: ProfileResult{Result: ResultPassed},
				B: ProfileResult{Result: ResultFailed, New: 3, Findings: []int{2}}},
			{Name: "quiet", State: DiffStill, A: ProfileResult{Result: ResultFailed, Findings: []int{2, 7}},
				B: ProfileResult{Result: ResultFailed, Findings: []int{2}}},
		},
		Passed: 1,
		Runs:   []Diff{Compare(a, b), Compare(a, a)},
		Kinds:  []KindDiff{{State: DiffFixed, A: 4, Label: "known (finding 1)", Title: "forgotten"}},
		Notes:  []string{"peer-crash: only in A"},
	}
}

func writePageOf(w io.Writer, c Comparison) error { return WriteComparisonHTML(w, c, "v0.1.0") }

var comparisonForms = map[string]func(io.Writer, Comparison) error{
	"comparison.txt": WriteComparisonText, "comparison.md": WriteComparisonMarkdown, "comparison.html": writePageOf,
}

func TestComparisonGolden(t *testing.T) {
	for name, write := range comparisonForms {
		var b bytes.Buffer
		if err := write(&b, smallComparison()); err != nil {
			t.Fatal(err)
		}
		golden.Hold(t, filepath.Join("testdata", name), b.String())
	}
}

// Names of servers, labels and paths stay text also in Markdown, and in their cells.
func TestHostileComparisonStaysText(t *testing.T) {
	poisoned := smallComparison()
	const control = "\x1b[31m\u009b2J\r\n\n# heading\n| cell | <img src=x> [link](https://example.com) @team `code` ![x](y) <!-- "
	poison(reflect.ValueOf(&poisoned).Elem(), control)
	var markdown bytes.Buffer
	if err := WriteComparisonMarkdown(&markdown, poisoned); err != nil {
		t.Fatal(err)
	}
	escaped := regexp.MustCompile(`\\.`)
	for _, live := range []string{"\x1b", "<img", "<!--", "\n# ", "[link]", " @team", "![x]", "`code`"} {
		if strings.Contains(escaped.ReplaceAllString(markdown.String(), ""), live) {
			t.Errorf("%q is live in\n%s", live, markdown.String())
		}
	}
	for line := range strings.Lines(markdown.String()) {
		cells := strings.Count(line, "|") - strings.Count(line, `\|`)
		if (strings.HasPrefix(line, "| fixed") || strings.HasPrefix(line, "| new")) && cells != 5 && cells != 6 { // of scenarios, and of kinds
			t.Errorf("a cell adds cells: %s", line)
		}
	}
}

// suiteOf is a conformance report with these results of scenarios in core.
func suiteOf(results map[string]ProfileResult) ConformanceReport {
	c := smallConformance()
	c.Scenarios = nil
	for _, name := range slices.Sorted(maps.Keys(results)) {
		p := results[name]
		if p.Result != ResultPassed && p.Reason == "" {
			p.Reason = "for a test"
		}
		c.Scenarios = append(c.Scenarios, ConformanceScenario{Name: name, Core: p, Extended: ProfileResult{Result: ResultPassed}})
	}
	c.Conclude()
	return c
}

func savedSuite(t *testing.T, c ConformanceReport) string {
	t.Helper()
	dir := t.TempDir()
	if err := SaveConformance(dir, c, nil); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSuitesAreComparedByTheirVerdicts(t *testing.T) {
	passed, unsure := ProfileResult{Result: ResultPassed}, ProfileResult{Result: ResultInconclusive}
	failed := func(newOnes int, known ...int) ProfileResult {
		p := ProfileResult{Result: ResultKnown, Violated: []string{"NoFalseNotFound"}, New: newOnes, Findings: known}
		if newOnes > 0 {
			p.Result = ResultFailed
		}
		return p
	}
	a := suiteOf(map[string]ProfileResult{"passes": passed, "breaks": passed, "stays": failed(0, 2, 7), "heals": failed(0, 2),
		"unknown": failed(0, 2), "gone": passed})
	b := suiteOf(map[string]ProfileResult{"passes": passed, "breaks": failed(1), "stays": failed(0, 2), "heals": passed, "unknown": unsure,
		"came": passed})
	c := compared(t, savedSuite(t, a), savedSuite(t, b))
	want := map[string]DiffState{"breaks": DiffNew, "stays": DiffStill, "heals": DiffFixed, "unknown": DiffUntested}
	got := map[string]DiffState{}
	for _, s := range c.Scenarios {
		got[s.Name] = s.State
	}
	if !maps.Equal(got, want) || c.Scenarios[0].Name != "breaks" || c.Passed != 1 || !c.Worse() {
		t.Errorf("%v, %d passed, worse %t", got, c.Passed, c.Worse())
	}
	if want := []string{"gone: only in A", "came: only in B"}; !slices.Equal(c.Notes, want) {
		t.Errorf("notes %q, want %q", c.Notes, want)
	}
	one := func(p ProfileResult) string {
		return filepath.Join(savedSuite(t, suiteOf(map[string]ProfileResult{"quiet": p})), ConformanceFile)
	}
	for name, x := range map[string]struct {
		a, b  ProfileResult
		worse bool
	}{
		"the same finding":        {failed(0, 2), failed(0, 2), false},
		"fewer findings":          {failed(0, 2, 7), failed(0, 2), false},
		"another finding":         {failed(0, 2), failed(0, 7), true},
		"something NEW":           {failed(0, 2), failed(3, 2), true},
		"NEW before, NEW after":   {failed(3, 2), failed(5, 2), false},
		"fixed":                   {failed(0, 2), passed, false},
		"inconclusive afterwards": {passed, unsure, false},
	} {
		if c := compared(t, one(x.a), one(x.b)); c.Worse() != x.worse { // only the file, without runs
			t.Errorf("%s: worse %t", name, c.Worse())
		}
	}
}

func TestWhatCannotBeComparedIsRefused(t *testing.T) {
	suite := savedSuite(t, suiteOf(map[string]ProfileResult{"quiet": {Result: ResultPassed}}))
	others := suiteOf(map[string]ProfileResult{"peer-crash": {Result: ResultPassed}})
	reference := suiteOf(map[string]ProfileResult{"quiet": {Result: ResultPassed}})
	reference.Product.Subject = "reference"
	run := func(change func(*RunReport)) string {
		r := judged("quiet", nil, "NoFalseNotFound")
		r.Metadata.Backend, r.Verdict.Outcome, r.Timeline.BucketSeconds = "sim", "", 1
		change(&r)
		r.Verdict.Outcome = r.Standing().Outcome()
		dir := t.TempDir()
		if err := WriteAll(dir, r); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	campaign := func(change func(*Campaign)) string { return savedCampaign(t, searched(change)) }
	same, same2 := run(func(*RunReport) {}), campaign(func(*Campaign) {})
	for name, c := range map[string]struct{ a, b, says string }{
		"a run and a suite":      {same, suite, "compare two of one kind"},
		"a campaign and a run":   {same2, same, "compare two of one kind"},
		"two subjects":           {suite, savedSuite(t, reference), "one subject"},
		"no scenario in common":  {suite, savedSuite(t, others), "no scenario is in both"},
		"runs of two scenarios":  {same, run(func(r *RunReport) { r.Metadata.Scenario = "peer-crash" }), "peer-crash, builtin, sim"},
		"real and simulated":     {same, run(func(r *RunReport) { r.Metadata.Backend = "local" }), "quiet, builtin, local"},
		"other servers":          {same2, campaign(func(c *Campaign) { c.Spec.Servers = 4 }), "different schedules"},
		"other seeds":            {same2, campaign(func(c *Campaign) { c.FirstSeed = 7 }), "different schedules"},
		"random and all of them": {same2, campaign(func(c *Campaign) { c.Method = MethodAll; c.Scope = &Scope{Events: 2} }), "different schedules"},
	} {
		if got, err := comparedOr(t, c.a, c.b); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %q in it; %s", name, err, c.says, got.Verdict())
		}
	}
	for name, path := range map[string]string{"nothing": filepath.Join(suite, "none"), "another file": filepath.Join(suite, ConformanceHTML), "an empty directory": t.TempDir()} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, CampaignJSON), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(broken); err == nil || !strings.Contains(err.Error(), CampaignJSON) {
		t.Errorf("a broken campaign: %v", err)
	}
}

// searched is a campaign that can be read back.
func searched(change func(*Campaign)) *Campaign {
	c := smallCampaign()
	c.Invariants = nil
	for _, i := range invariant.All() {
		c.Invariants = append(c.Invariants, InvariantCount{Name: i.Name, Grade: i.Grade, Requests: make([]RequestCount, len(RequestKinds))})
	}
	change(c)
	c.Conclude()
	return c
}

func savedCampaign(t *testing.T, c *Campaign) string {
	t.Helper()
	dir := t.TempDir()
	if err := WriteCampaign(dir, c); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCampaignsAreComparedByKind(t *testing.T) {
	known := func(n int, seed, schedules uint64) CampaignFinding {
		return CampaignFinding{ViolationKind: ViolationKind{Finding: n, Title: "T"}, Invariant: "NoFalseNotFound", Grade: invariant.GradeCore,
			Seed: seed, Schedules: schedules}
	}
	unknown := known(0, 9, 4)
	unknown.ViolationKind = ViolationKind{Signature: invariant.Signature{Invariant: "NoFalseNotFound", Mechanism: invariant.MechanismWatch,
		Answer: "404 resource"}}
	a := searched(func(c *Campaign) {
		c.Findings = []CampaignFinding{known(1, 5, 40), known(2, 300, 7), known(3, 19_000, 1)}
	})
	b := searched(func(c *Campaign) {
		c.Spec.Policy, c.Findings, c.Schedules = "upstream-1.36", []CampaignFinding{known(1, 5, 38), unknown}, 10_000
		c.Parts[0].Schedules, c.Parts[1].Schedules = 5000, 5000
	})
	c := compared(t, savedCampaign(t, a), savedCampaign(t, b))
	want := []KindDiff{
		{State: DiffNew, B: 4, Label: "NEW", Signature: unknown.ViolationKind.Signature},
		{State: DiffStill, A: 40, B: 38, Label: "known (finding 1)", Title: "T"},
		{State: DiffFixed, A: 7, Label: "known (finding 2)", Title: "T"},
		{State: DiffUntested, A: 1, Label: "known (finding 3)", Title: "T"}, // B did not reach its seed
	}
	if !slices.Equal(c.Kinds, want) || !c.Worse() || len(c.Notes) != 1 {
		t.Errorf("%+v\nwant %+v; notes %q", c.Kinds, want, c.Notes)
	}
	if back := compared(t, savedCampaign(t, b), savedCampaign(t, a)); back.Kinds[0].State != DiffNew || back.Tally() != "2 new, 1 still, 1 fixed" {
		t.Errorf("the other way round: %s", back.Tally())
	}
}

// A matrix has a scenario several times. Each run is compared with the run of the same versions.
func TestRunsOfSeveralVersionsArePaired(t *testing.T) {
	of := func(from, to string) RunReport {
		r := judged("quiet", nil, "NoFalseNotFound")
		r.Metadata.From, r.Metadata.To = from, to
		return r
	}
	pairs, onlyA, onlyB := paired([]RunReport{of("v1.35.4", "v1.36.3"), of("v1.36.3", "v1.37.1")},
		[]RunReport{of("v1.36.3", "v1.37.1"), of("v1.34.4", "v1.36.3"), of("v1.30.14", "v1.31.0")})
	if len(pairs) != 2 || pairs[0][0].Metadata.To != "v1.37.1" || pairs[0][1].Metadata.To != "v1.37.1" || pairs[1][1].Metadata.From != "v1.34.4" || len(onlyA) != 0 || len(onlyB) != 1 {
		t.Errorf("%d pairs, only A %q, only B %q", len(pairs), onlyA, onlyB)
	}
}

func TestLatenciesAreOfWhatSucceeded(t *testing.T) {
	var all []Latency
	for _, l := range reportOf(smallRun(), smallVerdicts(), Options{}).Latencies {
		all = append(all, l)
		if l.Measured > l.Requests || l.P50Seconds > l.P99Seconds || (l.Measured == 0) != (l.P99Seconds == 0) {
			t.Errorf("%+v", l)
		}
	}
	requests := 0
	for _, l := range all {
		requests += l.Requests
	}
	if want := len(smallRun().Operations); requests != want || want == 0 {
		t.Errorf("%d requests in %+v, want %d", requests, all, want)
	}
	if got := percentile([]history.Time{1, 2, 3, 4}, 50); got != 2 {
		t.Errorf("the median is %d", got)
	}
	if got := percentile([]history.Time{1, 2, 3, 4}, 99); got != 4 {
		t.Errorf("p99 is %d", got)
	}
}

func TestMergedDiscoveryIsWhatWasListedAtLast(t *testing.T) {
	document := func(hash string, names ...string) history.Document {
		d := history.Document{Hash: hash}
		for _, n := range names {
			d.Resources = append(d.Resources, history.Resource{GVR: history.GVR{Group: "apps", Version: "v1", Resource: n},
				Subresources: []history.Subresource{{Name: "status"}}})
		}
		return d
	}
	asked := func(server, path, verb, hash string, at history.Time) history.Operation {
		return history.Operation{End: at,
			Sent:     &history.Sent{Server: server, Path: path, Verb: verb},
			Received: &history.Received{Document: hash}}
	}
	h := &history.History{
		Documents: map[string]history.Document{"one": document("one", "x"), "both": document("both", "x", "y"),
			"more": document("more", "x", "y", "z")},
		Operations: []history.Operation{
			asked("a", "/apis", history.VerbDiscovery, "both", 9), asked("a", "/apis", history.VerbDiscovery, "one", 5),
			asked("b", "/apis", history.VerbDiscovery, "one", 7),
			asked("b", "/apis", history.VerbNoPeer, "more", 8), asked("b", "/api", history.VerbDiscovery, "more", 8),
			asked("b", "/apis", history.VerbDiscovery, "unread", 9),
		},
	}
	want := &MergedDiscovery{Everywhere: []string{"apps/v1/x", "apps/v1/x/status"}, Partly: []string{"apps/v1/y", "apps/v1/y/status"}}
	if got := newMergedDiscovery(h); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := newMergedDiscovery(&history.History{}); got != nil {
		t.Errorf("%+v of nothing", got)
	}
	if d := compareDiscovery(RunReport{Discovery: want}, RunReport{Discovery: &MergedDiscovery{Everywhere: []string{"apps/v1/x"}}}); d == nil || len(d.OnlyA) != 1 || d.OnlyB != nil {
		t.Errorf("%+v", d)
	}
}

// An error may be quick or slow, and a watch lasts as long as it is asked to. So neither has a
// latency.
func TestErrorsAndWatchesHaveNoLatency(t *testing.T) {
	h := &history.History{Run: history.Run{Servers: []history.Server{{Name: "a"}}}, End: history.End{Complete: true}}
	for i, o := range []history.Operation{
		{End: 3e9,
			Sent:     &history.Sent{Verb: "get"},
			Received: &history.Received{Status: 200}}, {End: 1e9, Sent: &history.Sent{Verb: "get"},
			Received: &history.Received{Status: 200}}, {End: 20e9, Sent: &history.Sent{Verb: "get"},
			Received: &history.Received{Status: 503}}, {End: 30e9, Sent: &history.Sent{Verb: "get"},
			Received: &history.Received{Status: 200, Failure: history.FailureReset}},
		{End: 50e9,
			Sent:     &history.Sent{Verb: "watch"},
			Received: &history.Received{Status: 200}}, {End: 60e9, Sent: &history.Sent{Verb: "get", Client: history.ClientSocket},
			Received: &history.Received{Status: 101}}, {End: 1e6, Sent: &history.Sent{Verb: "get"},
			Received: &history.Received{Status: 404}},
	} {
		o.Server, o.ID, o.GVR, o.Path = "a", string(rune('0'+i)), history.GVR{Version: "v1", Resource: "pods"}, "/api/v1/pods"
		h.Operations = append(h.Operations, o)
	}
	got := reportOf(h, nil, Options{}).Latencies
	if len(got) != 1 || got[0].Requests != 7 || got[0].Measured != 2 || got[0].P50Seconds != 1 || got[0].P99Seconds != 3 {
		t.Errorf("%+v", got)
	}
}
