package replay

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/search"
)

var onlyNewer = history.GVR{Group: "resource.k8s.io", Version: "v1", Resource: "devicetaintrules"}

func cutOff(from, to string) scenario.Step {
	return scenario.Step{Action: scenario.Inject, Label: from + to, Fault: &fault.Fault{Kind: fault.Cut, From: from, To: to}}
}

// preset returns the preset of the version's minor.
func preset(version string) (proxy.Policy, error) {
	return proxy.PresetNamed("upstream-" + strings.TrimPrefix(semver.MajorMinor(version), "v"))
}

func repro(steps []scenario.Step, requests ...sim.Request) *search.Repro {
	return &search.Repro{Case: sim.Case{
		Servers:  []scenario.Server{{Name: "a", Version: "v1.37.1"}, {Name: "b", Version: "v1.36.3"}, {Name: "c", Version: "v1.36.3"}},
		Steps:    steps,
		Requests: requests,
	}}
}

func soaking(d time.Duration) scenario.Step { return scenario.Step{Action: scenario.Soak, For: d} }
func to(action scenario.Action, server string) scenario.Step {
	return scenario.Step{Action: action, Server: server}
}

func sentences(steps []scenario.Step) []string {
	var all []string
	for _, s := range steps {
		all = append(all, strings.TrimPrefix(s.String(), "let the load run "))
	}
	return all
}

func TestAPlanForRealProcesses(t *testing.T) {
	const end = "until 25s after the last disturbance"
	asking := func(step int, after time.Duration) sim.Request {
		return sim.Request{Step: step, After: after, Server: "b", Request: workload.Request{Verb: "list", GVR: onlyNewer}}
	}
	for name, c := range map[string]struct {
		steps    []scenario.Step
		requests []sim.Request
		want     []string
	}{
		"nothing": {nil, nil, []string{"for 15s", end}},
		"a fault that is left on is healed in the end, after the request was met": {
			[]scenario.Step{cutOff("b", "a")}, []sim.Request{asking(1, 10*time.Second)},
			[]string{"for 9s", "cut, b→a", "for 25s", "heal: ba", end},
		},
		"short waits become longer, long ones shorter, and none stays none": {
			[]scenario.Step{
				soaking(time.Millisecond), to(scenario.Kill, "a"), soaking(time.Hour), to(scenario.Start, "a"), to(scenario.Restart, "c"),
				soaking(time.Millisecond), to(scenario.Restart, "b"),
			}, nil,
			[]string{"for 9s", "kill a", "for 1m0s", "start a", "restart c", "for 2s", "restart b", "for 15s", end},
		},
		"waits add up": {
			[]scenario.Step{
				to(scenario.Kill, "a"), soaking(3 * time.Second), soaking(4 * time.Second), {Action: scenario.Outlast, For: 6 * time.Second},
				to(scenario.Start, "a"),
			}, nil,
			[]string{"for 9s", "kill a", "for 7s", "start a", "for 15s", end},
		},
		"the wait in which a request falls is long enough to meet it": {
			[]scenario.Step{cutOff("b", "a"), soaking(5 * time.Second), to(scenario.Restart, "c"), soaking(time.Second), {Action: scenario.Heal, Label: "ba"}},
			[]sim.Request{asking(1, 5500*time.Millisecond)}, // half a second after the restart
			[]string{"for 9s", "cut, b→a", "for 5s", "restart c", "for 15.5s", "heal: ba", "for 15s", end},
		},
		"a request that follows a step is not met before it": {
			[]scenario.Step{to(scenario.Restart, "c"), cutOff("b", "a")}, []sim.Request{asking(2, 0), asking(1, 0)},
			[]string{"for 9s", "restart c", "for 15s", "cut, b→a", "for 15s", "heal: ba", end},
		},
		"a request before everything": {
			[]scenario.Step{to(scenario.Restart, "c")}, []sim.Request{asking(0, 5*time.Second)},
			[]string{"for 9s", "restart c", "for 20s", end},
		},
		"a server that is down or paused comes back": {
			[]scenario.Step{to(scenario.Pause, "a"), to(scenario.Pause, "b"), to(scenario.Kill, "b"), to(scenario.Stop, "c")}, nil,
			[]string{"for 9s", "pause a", "pause b", "kill b", "stop c", "for 15s", "start c", "start b", "resume a", end},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := repro(c.steps, c.requests...)
			plan := planOf(&r.Case, patient)
			if diff := cmp.Diff(c.want, sentences(plan.Steps)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if len(plan.Refused) > 0 {
				t.Errorf("refused: %q", plan.Refused)
			}
			if err := plan.Validate(); err != nil {
				t.Error(err)
			}
			if long := slices.ContainsFunc(c.steps, func(s scenario.Step) bool { return s.For > time.Minute }); long != (len(plan.Changed) > 0) {
				t.Errorf("it says that this is not as in the file: %q", plan.Changed)
			}
		})
	}
}

func TestWhatRealProcessesCannotDoIsNamedAndLeftOut(t *testing.T) {
	inject := func(label string, f fault.Fault) scenario.Step {
		f.From, f.To = "b", "a"
		return scenario.Step{Action: scenario.Inject, Label: label, Fault: &f}
	}
	r := repro([]scenario.Step{
		inject("black hole", fault.Fault{Kind: fault.Timeout, Direction: fault.Down}),
		inject("slow", fault.Fault{Kind: fault.Latency, Latency: time.Second}),
		inject("other way", fault.Fault{Kind: fault.Reset, Direction: fault.Up}),
		inject("second hole", fault.Fault{Kind: fault.Timeout}),
		{Action: scenario.Heal, Label: "second hole"},
		{Action: scenario.Heal, Label: "black hole"},
		inject("third hole", fault.Fault{Kind: fault.LimitData, Bytes: 5, Direction: fault.Down}),
	}, sim.Request{Server: "a", Request: workload.Request{Verb: "get", GVR: onlyNewer, Forged: workload.ForgedHop}})
	plan := planOf(&r.Case, patient)
	want := []string{"request 1", "step 2: inject latency", "step 4: inject timeout"}
	if len(plan.Refused) != len(want) {
		t.Fatalf("refused %d, want %d: %q", len(plan.Refused), len(want), plan.Refused)
	}
	for i := range want {
		if !strings.HasPrefix(plan.Refused[i], want[i]) {
			t.Errorf("refused: %q, want %q", plan.Refused[i], want[i])
		}
	}
	if err := plan.Validate(); err != nil {
		t.Error(err)
	}
	var heals []string
	for _, s := range plan.Steps {
		if s.Action == scenario.Heal {
			heals = append(heals, s.Label)
		}
	}
	if diff := cmp.Diff([]string{"black hole", "third hole", "other way"}, heals); diff != "" {
		t.Errorf("healed (-want +got):\n%s", diff)
	}
}

// A discovery document that fails until the end of a file must be restored before the plan waits
// for convergence.
func TestFailingDiscoveryIsRestored(t *testing.T) {
	aggregated := &scenario.Definition{Group: "metrics.example.com", Resource: "gauges", Versions: []string{"v1"}, Aggregated: true}
	plan := planOf(&repro([]scenario.Step{
		{Action: scenario.BreakDiscovery, Server: "a", Path: "/apis"},
		{Action: scenario.Define, Definition: aggregated},
		{Action: scenario.BreakDiscovery, Server: "a", Path: "/api", Failure: fault.CutShort},
		{Action: scenario.RestoreDiscovery, Server: "a", Path: "/apis"},
		{Action: scenario.Undefine, Definition: aggregated},
	}, sim.Request{Server: "a", Request: workload.Request{Verb: "get", GVR: onlyNewer}}).Case, patient)
	if len(plan.Refused) > 0 {
		t.Errorf("refused: %q", plan.Refused)
	}
	var spoilt, restored []string
	for _, s := range plan.Steps {
		switch s.Action {
		case scenario.RestoreDiscovery:
			restored = append(restored, s.Server+s.Path)
		case scenario.BreakDiscovery:
			spoilt = append(spoilt, s.Server+s.Path+" "+string(s.Failure))
		}
	}
	if diff := cmp.Diff([]string{"a/apis ", "a/api cut-short"}, spoilt); diff != "" {
		t.Errorf("spoilt (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a/apis", "a/api"}, restored); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
	if err := plan.Validate(); err != nil {
		t.Error(err)
	}
}

func TestSubjectsOfPolicies(t *testing.T) {
	both := []string{"v1.36.3", "v1.37.1"}
	for policy, want := range map[string]string{"upstream-1.37": "builtin", "upstream-1.36": "builtin", "reference": "reference", "none": "none"} {
		subject, unlike, err := subjectOf(search.Spec{Policy: policy}, both, preset)
		if err != nil || subject != want || len(unlike) > 0 {
			t.Errorf("%s: %s, %q, %v; want %s without a difference", policy, subject, unlike, err, want)
		}
	}
	_, unlike, err := subjectOf(search.Spec{Policy: "upstream-1.37"}, []string{"v1.34.4", "v1.35.4"}, preset)
	if err != nil || len(unlike) != 2 || !strings.Contains(unlike[0], "in kube-apiserver v1.34.4: its own proxy behaves like upstream-1.34") {
		t.Errorf("a policy that those versions do not have: %q, %v", unlike, err)
	}
	if _, _, err := subjectOf(search.Spec{Policy: "alpha-1.28"}, both, preset); err == nil {
		t.Error("real processes have a subject for alpha-1.28")
	}
}

// Real servers serve many resources that a file does not request. A violation on one of them is not
// the file's violation.
func TestOnlyWhatTheFileAsksForCounts(t *testing.T) {
	asked := history.Operation{ID: "asked", Sent: &history.Sent{Verb: "get", GVR: onlyNewer}, Received: &history.Received{}}
	document := history.Operation{ID: "document",
		Sent:     &history.Sent{Verb: history.VerbDiscovery, Path: "/apis"},
		Received: &history.Received{}}
	others := []history.Operation{
		{ID: "other resource",
			Sent:     &history.Sent{Verb: "get", GVR: history.GVR{Version: "v1", Resource: "pods"}},
			Received: &history.Received{}}, {ID: "subresource", Sent: &history.Sent{Verb: "get", GVR: onlyNewer, Subresource: "status"},
			Received: &history.Received{}},
		{ID: "discovery of a group",
			Sent:     &history.Sent{Verb: history.VerbDiscovery, GVR: history.GVR{Group: onlyNewer.Group}},
			Received: &history.Received{}},
	}
	for name, c := range map[string]struct {
		request sim.Request
		want    string
	}{
		"a resource": {sim.Request{Request: workload.Request{Verb: "list", GVR: onlyNewer}}, "asked"},
		"discovery":  {sim.Request{Request: workload.Request{Verb: history.VerbDiscovery, Path: "/apis"}}, "document"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history.History{Operations: append([]history.Operation{asked, document}, others...)}
			keepRequested(h, repro(nil, c.request))
			if len(h.Operations) != 1 || h.Operations[0].ID != c.want {
				t.Errorf("kept %+v, want %s", h.Operations, c.want)
			}
		})
	}
}

// Operations that are not judged still count as pressure.
func TestOtherRequestsArePressureToo(t *testing.T) {
	r := repro(nil, sim.Request{Request: workload.Request{Verb: "list", GVR: onlyNewer}})
	r.Invariant = "NoFalseNotFound"
	withOthers := func(others int) *history.History {
		pods := history.GVR{Version: "v1", Resource: "pods"}
		h := &history.History{
			Run:       history.Run{About: []string{r.Invariant}, Pressure: history.Pressure{Operations: 50}},
			Documents: map[string]history.Document{"all": {Hash: "all", Resources: []history.Resource{{GVR: onlyNewer}, {GVR: pods}}}},
			End:       history.End{At: time.Minute, Complete: true},
		}
		h.Lifecycle = []history.Lifecycle{{Server: "a", Incarnation: 1, State: history.StateStarting}, {Server: "a", Incarnation: 1, State: history.StateReady, At: 1}}
		h.Served = []history.Served{{Server: "a", Incarnation: 1, At: 1, Document: "all"}}
		add := func(g history.GVR) {
			at := 20*time.Second + time.Duration(len(h.Operations))*time.Millisecond
			h.Operations = append(h.Operations, history.Operation{ID: strconv.Itoa(len(h.Operations)), Start: at, End: at,
				Sent:     &history.Sent{Server: "a", Verb: "list", GVR: g},
				Received: &history.Received{Status: 200}})
		}
		add(onlyNewer)
		for range others {
			add(pods)
		}
		return h
	}
	for others, want := range map[int]invariant.Outcome{49: invariant.OutcomePass, 48: invariant.OutcomeInconclusive} {
		if v := VerdictOn(judgeRequested(withOthers(others), r), r); v.Outcome != want {
			t.Errorf("with %d other requests it is %s (%s), want %s", others, v.Outcome, v.Reason, want)
		}
	}
}

// A schedule for a search on real servers waits for conditions at both ends, and otherwise only for
// short times. The first request decides the kind of load.
func TestAScheduleForASearch(t *testing.T) {
	c := repro([]scenario.Step{
		cutOff("b", "a"), soaking(time.Minute), to(scenario.Kill, "c"), soaking(time.Millisecond), to(scenario.Restart, "b"),
		{Action: scenario.Outlast, For: 25 * time.Second},
	}, sim.Request{Step: 1, After: time.Hour, Server: "b", Request: workload.Request{Verb: "watch", Upgrade: true, GVR: onlyNewer}}).Case
	p := ScheduleOf(&c)
	const first, last = "the servers agree and answer, or until 20s after the last disturbance", "the servers agree and answer, or until 25s after the last disturbance"
	want := []string{"until " + first, "cut, b→a", "for 6.5s", "kill c", "for 1s", "restart b", "for 2s", "heal: ba", "start c", "until " + last}
	got := sentences(p.Steps)
	for i := range got {
		got[i] = strings.TrimPrefix(got[i], "let the load run ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p.Traffic != scenario.UpgradeTraffic || p.Validate() != nil {
		t.Errorf("the load is %q, %v", p.Traffic, p.Validate())
	}
	again := Enclosed(p, Enclosing(p))
	if diff := cmp.Diff(p, again); diff != "" {
		t.Errorf("its own steps, enclosed (-want +got):\n%s", diff)
	}
	less := Enclosed(p, []scenario.Step{{Action: scenario.Heal, Label: "ba"}, to(scenario.Kill, "c")})
	if got := sentences(less.Steps); !slices.Equal(got, []string{"until " + first, "kill c", "start c", "until " + last}) {
		t.Errorf("fewer steps, enclosed: %q", got)
	}
}
