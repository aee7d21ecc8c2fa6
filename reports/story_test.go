package reports

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

const (
	older = "v1.36.3"
	newer = "v1.37.1"
)

var started = time.Date(2026, time.March, 14, 9, 26, 53, 0, time.UTC)

func at(s float64) history.Time { return history.Time(s * float64(time.Second)) }

func gvr(group, version, resource string) history.GVR {
	return history.GVR{Group: group, Version: version, Resource: resource}
}

var (
	configMaps   = gvr("", "v1", "configmaps")
	trustBundles = gvr("certificates.k8s.io", "v1", "clustertrustbundles")
	podRequests  = gvr("certificates.k8s.io", "v1", "podcertificaterequests")
	nobodys      = gvr("example.org", "v1", "unicorns")
)

// documents are what the two versions themselves serve.
func documents() map[string]history.Document {
	list := func(hash string, gvrs ...history.GVR) history.Document {
		d := history.Document{Hash: hash, Bytes: 4096}
		for _, g := range gvrs {
			d.Resources = append(d.Resources, history.Resource{GVR: g, Verbs: []string{"get", "list"}})
		}
		return d
	}
	return map[string]history.Document{
		"sha256:older": list("sha256:older", configMaps),
		"sha256:newer": list("sha256:newer", configMaps, trustBundles, podRequests),
	}
}

// smallRun is a run in which every part of a report occurs once: a is new, b and c are old; b→a is
// cut, c is restarted, and b answers 404 for a resource that a serves. testedForTests has a patched
// binary and a released one.
func testedForTests() Tested {
	return Tested{Label: "retry 404s", Binaries: []history.Binary{
		{Component: "kube-apiserver", Version: older, Says: "Kubernetes " + older, SHA256: strings.Repeat("0a", 32)},
		{Component: "kube-apiserver", Version: newer, Says: "Kubernetes " + newer + "-dirty", SHA256: strings.Repeat("1b", 32), Own: true},
	}}
}

// reportOf is the report of a history with these verdicts.
func reportOf(h *history.History, verdicts []invariant.Verdict, opts Options) RunReport {
	return New(invariant.NewFacts(h), verdicts, opts)
}

func smallRun() *history.History {
	h := &history.History{
		Run: history.Run{
			Schema: history.SchemaVersion, Scenario: "restart-during-partition",
			Sentence: "While b cannot reach a, c, which has nothing to do with it, is restarted.",
			Backend:  "local", Subject: "builtin", From: older, To: newer, Seed: 7, QPS: 200, StartedAt: started,
			Servers: []history.Server{
				{Name: "a", ID: "apiserver-aaaa", Version: newer, Address: "10.0.0.1:6443",
					Args: []string{"--etcd-servers=http://10.0.0.254:2379", "--feature-gates=UnknownVersionInteroperabilityProxy=true"}},
				{Name: "b", ID: "apiserver-bbbb", Version: older, Address: "10.0.0.2:6443", Args: []string{"--etcd-servers=http://10.0.0.254:2379"}},
				{Name: "c", Version: older},
			},
			About: []string{"NoFalseNotFound"}, Pressure: history.Pressure{Operations: 10, Skewed: 5}, Bounds: history.DefaultBounds,
			Reproduce:   "skewproof run restart-during-partition --backend local --subject builtin --from v1.36.3 --to v1.37.1 --seed 7",
			Environment: []string{"linux 6.12 amd64, 2 processors", "go1.26"}, Label: testedForTests().Label, Binaries: testedForTests().Binaries,
		},
		Documents: documents(),
		End:       history.End{At: at(20), Complete: true},
	}
	life := func(server string, incarnation int, version string, state history.State, t float64, detail string) {
		h.Lifecycle = append(h.Lifecycle, history.Lifecycle{Server: server, Incarnation: incarnation, Version: version, State: state, At: at(t),
			Detail: detail})
	}
	for _, s := range h.Run.Servers {
		life(s.Name, 1, s.Version, history.StateStarting, 0, "")
	}
	for n, s := range h.Run.Servers {
		life(s.Name, 1, s.Version, history.StateReady, 2+float64(n)/10, "")
		hash := "sha256:older"
		if s.Version == newer {
			hash = "sha256:newer"
		}
		h.Served = append(h.Served, history.Served{Server: s.Name, Incarnation: 1, At: at(2.5), Document: hash})
	}
	life("c", 1, older, history.StateKilled, 8, "signal: killed")
	life("c", 2, older, history.StateStarting, 8.5, "")
	life("c", 2, older, history.StateReady, 11, "")
	life("a", 1, newer, history.StatePaused, 15, "")
	life("a", 1, newer, history.StateResumed, 16, "")
	h.Served = append(h.Served, history.Served{Server: "c", Incarnation: 2, At: at(11.2), Document: "sha256:older"})
	h.Steps = []history.Step{
		{Index: 0, Sentence: "cut b→a", Start: at(5), End: at(5.1), Disturbs: true},
		{Index: 1, Sentence: "restart c", Start: at(8), End: at(11), Disturbs: true},
		{Index: 2, Sentence: "heal b→a", Start: at(14), End: at(14), Error: "toxiproxy: 500"},
		{Index: 3, Sentence: "pause a for 1s", Start: at(15), End: at(16), Disturbs: true},
	}
	h.Faults = []history.Fault{
		{ID: 1, Kind: "cut", From: "b", To: "a", Blocks: true, Start: at(5), End: at(14),
			Evidence: history.Evidence{Refused: 41, Cut: 2, BytesUp: 517}},
		{ID: 2, Kind: "kill", Server: "c", Detail: "SIGKILL", Start: at(8), End: at(8.5)},
	}
	h.Effects = []history.Effect{
		{
			Server: "c", Incarnation: 1, At: at(7.9), Setup: "its serving certificate: expired",
			Certificate: "CN=c by CN=skewproof ca, no. 2a, until 2026-03-13T09:26:53Z", Advertised: "10.0.0.3:6443",
			Dials: []history.Dial{{From: "a", Address: "10.0.0.3:6443", Connections: 4},
				{From: "client", Address: "10.0.0.3:6443", Connections: 1921}},
		},
		{Server: "a", Incarnation: 1, At: at(7), Setup: "its proxy switched off"},
	}
	h.SlowProbes = []history.SlowProbe{
		{Server: "a", Start: at(15.1), End: at(16), Queued: 1200 * time.Microsecond},
		{Server: "b", Start: at(17), End: at(19.5)},
	}
	add := func(t float64, server, verb string, g history.GVR, status int, missing history.Missing, failure history.Failure) {
		h.Operations = append(h.Operations, history.Operation{ID: fmt.Sprintf("op-%d", len(h.Operations)+1), Start: at(t), End: at(t + 0.004),
			Sent: &history.Sent{Purpose: history.PurposeLoad, Client: "dynamic", User: "admin", Server: server, Verb: verb, GVR: g,
				Path: "/apis/" + g.String()},
			Received: &history.Received{Status: status, Missing: missing, Failure: failure}})
	}
	add(3, "a", "list", trustBundles, 200, "", "")
	add(3.1, "b", "list", configMaps, 200, "", "")
	add(3.2, "b", "list", trustBundles, 200, "", "")
	add(3.3, "c", "get", configMaps, 404, history.MissingObject, "")
	add(3.4, "c", "list", nobodys, 404, history.MissingResource, "")
	add(3.5, "c", history.VerbDiscovery, history.GVR{}, 200, "", "")
	add(6, "b", "list", trustBundles, 503, "", "")
	add(8.2, "c", "list", configMaps, 0, "", history.FailureRefused)
	add(9, "c", "list", configMaps, 0, "", history.FailureCanceled)
	add(12, "b", "list", trustBundles, 404, history.MissingResource, "")
	add(12.5, "b", "list", trustBundles, 404, history.MissingResource, "")
	add(13, "b", "create", configMaps, 500, "", "")
	add(13.1, "c", "create", configMaps, 403, "", "")
	add(13.2, "c", "watch", configMaps, 200, "", history.FailureReset)
	h.Hops = []history.Hop{{Operation: "op-10", Start: at(12.001), End: at(12.003),
		Entry: &history.Entry{Server: "b", Status: 404, User: "admin"}}}
	return h
}

// smallVerdicts are the verdicts on smallRun: one of every outcome and grade, and evidence of every
// shape.
func smallVerdicts() []invariant.Verdict {
	h := smallRun()
	falseOne := h.Operations[9]
	falseOne.Reason, falseOne.Message = "NotFound", "the server could not find the requested resource"
	return []invariant.Verdict{
		{
			Name: "NoFalseNotFound", Grade: invariant.GradeCore, Outcome: invariant.OutcomeFail, About: true,
			Sentence: "No server denies a resource that another one serves.", Source: "KEP-4020, Goals",
			Checked: 5, Violations: 2, Kinds: 3, Facts: []invariant.Fact{{Name: "tolerated while knowledge spread", Value: "0"}},
			TakenOut: []invariant.TakenOut{
				{Class: "whole resource", Answer: "401", Reason: "rejected before routing", Count: 31, Of: 310, Unruled: 31},
				{Class: "watch", Answer: "no answer (canceled)", Reason: "canceled by the load", Count: 2, Of: 40},
			},
			Unruled: 31,
			Evidence: []invariant.Evidence{{
				Sentence: "b was asked at 12s: list certificates.k8s.io/v1/clustertrustbundles. It answered 404, though a (v1.37.1) serves it since 2.5s but was hindered: fault 1, cut b→a since 5s.",
				Signature: invariant.Signature{
					Invariant: "NoFalseNotFound", Mechanism: invariant.MechanismResource, Roles: invariant.RoleOlder, Answer: "404 resource",
					Reach: invariant.ReachNone, Obstacle: invariant.ObstacleLink, Change: invariant.ChangeOther,
				},
				Cause: "404 though a served it, out of reach", Count: 2, First: at(12), Last: at(12.504), Asked: "b", GVR: trustBundles,
				Resources: []string{podRequests.String(), trustBundles.String()}, ResourcesTotal: 2,
				Operations: []history.Operation{falseOne},
				Candidates: []invariant.Candidate{{Server: "a", Version: newer, Since: at(2.5), Obstacle: "fault 1, cut b→a since 5s"}},
				Hops: []history.Hop{
					{Operation: falseOne.ID, Start: at(12.001), End: at(12.003), Entry: &history.Entry{Server: "b", Status: 404, User: "admin"}},
				},
			}},
		},
		{
			Name: "NoLoop", Grade: invariant.GradeCore, Outcome: invariant.OutcomeInconclusive,
			Sentence: "A request takes at most one hop.", Reason: "not exercised",
		},
		{
			Name: "DiscoveryDeterministic", Grade: invariant.GradeCore, Outcome: invariant.OutcomeFail,
			Sentence: "All servers give the same discovery document.", Checked: 2, Violations: 1, Kinds: 1, Unjudgeable: 3,
			Evidence: []invariant.Evidence{{
				Sentence: "a and c gave different documents.", Count: 1, First: at(3.5), Last: at(3.5),
				Operations: []history.Operation{h.Operations[0], h.Operations[5]},
				Difference: &invariant.Difference{
					Left: "merged /apis of a", Right: "merged /apis of c", LeftHash: "sha256:1111", RightHash: "sha256:2222", LeftETag: `"1"`,
					RightETag: `"2"`,
					OnlyLeft:  []string{trustBundles.String()}, OnlyLeftTotal: 1,
				},
			}},
		},
		{
			Name: "Available", Grade: invariant.GradeExtended, Outcome: invariant.OutcomeFail,
			Sentence: "No request fails while a server that can serve it can be reached.", Checked: 9, Violations: 1, Kinds: 1,
			Evidence: []invariant.Evidence{{
				Sentence: "b answered 500.", Count: 1, First: at(13), Last: at(13), Asked: "b", GVR: configMaps,
				Resources: []string{configMaps.String()}, ResourcesTotal: 1,
				Operations: []history.Operation{h.Operations[11]},
				Candidates: []invariant.Candidate{{Server: "b", Version: older, Since: at(2.5), Reachable: true}},
			}},
		},
		{
			Name: "NoCrash", Grade: invariant.GradeCore, Outcome: invariant.OutcomePass, Sentence: "No server ends unasked.", Checked: 3,
		},
		{
			Name: "Converges", Grade: invariant.GradeCore, Outcome: invariant.OutcomeInconclusive, About: true,
			Sentence: "All is right again soon after the last disturbance.",
			Reason:   "the history ends 6s after the last disturbance, 30s are needed",
		},
	}
}

// bigRun is a run of ordinary size: three servers are upgraded under load for 90 s. Meanwhile b→a
// is cut and c is paused.
func bigRun() *history.History {
	h := smallRun()
	h.Operations, h.Hops, h.Lifecycle, h.Served, h.Steps, h.Faults = nil, nil, nil, nil, nil, nil
	h.Run.Scenario = "rolling-upgrade-during-partition"
	h.Run.Sentence = "Three kube-apiservers are upgraded one by one under load; while the second one is, it cannot reach the first."
	h.End.At = at(90)
	life := func(server string, incarnation int, version string, state history.State, t float64) {
		h.Lifecycle = append(h.Lifecycle, history.Lifecycle{Server: server, Incarnation: incarnation, Version: version, State: state, At: at(t)})
	}
	serve := func(server string, incarnation int, version string, from float64) {
		life(server, incarnation, version, history.StateStarting, from)
		life(server, incarnation, version, history.StateReady, from+3.6)
		hash := "sha256:older"
		if version == newer {
			hash = "sha256:newer"
		}
		h.Served = append(h.Served, history.Served{Server: server, Incarnation: incarnation, At: at(from + 3.7), Document: hash})
	}
	for n := range h.Run.Servers {
		h.Run.Servers[n].Version = older
		serve(h.Run.Servers[n].Name, 1, older, 0)
	}
	replaced := map[string]float64{"a": 12, "b": 34, "c": 66}
	for n, server := range []string{"a", "b", "c"} {
		t := replaced[server]
		life(server, 1, older, history.StateStopping, t)
		life(server, 1, older, history.StateStopped, t+1.8)
		serve(server, 2, newer, t+2)
		h.Steps = append(h.Steps, history.Step{Index: len(h.Steps), Sentence: "replace " + server + " by " + newer, Start: at(t),
			End: at(t + 5.6), Disturbs: true})
		if n == 0 {
			h.Steps = append(h.Steps,
				history.Step{Index: 1, Sentence: "cut b→a", Start: at(26), End: at(26), Disturbs: true},
				history.Step{Index: 2, Sentence: "visit everything that discovery lists", Start: at(28), End: at(31)})
		}
	}
	life("c", 1, older, history.StatePaused, 46)
	life("c", 1, older, history.StateResumed, 52)
	h.Steps = append(h.Steps,
		history.Step{Index: 5, Sentence: "pause c for 6s", Start: at(46), End: at(52), Disturbs: true},
		history.Step{Index: 6, Sentence: "heal b→a", Start: at(56), End: at(56), Disturbs: true},
		history.Step{Index: 7, Sentence: "wait until everything has converged", Start: at(76), End: at(90)})
	h.Faults = []history.Fault{
		{ID: 1, Kind: "cut", From: "b", To: "a", Blocks: true, Start: at(26), End: at(56),
			Evidence: history.Evidence{Refused: 412, Cut: 3, BytesUp: 51712}},
		{ID: 2, Kind: "pause", Server: "c", Blocks: true, Detail: "SIGSTOP", Start: at(46), End: at(52),
			Evidence: history.Evidence{Requests: 388}},
		{ID: 3, Kind: "latency", From: "client", To: "c", Detail: "latency 200ms ±50ms downstream", Start: at(60), End: at(64)},
	}
	random := rand.New(rand.NewPCG(1, 2))
	resources := []history.GVR{configMaps, configMaps, configMaps, trustBundles, podRequests, nobodys}
	for n := range 18_000 {
		t := float64(n) / 200
		server := []string{"a", "b", "c"}[n%3]
		g := resources[random.IntN(len(resources))]
		o := history.Operation{ID: fmt.Sprintf("6f1d0c52-%08x", n), Start: at(t), End: at(t + 0.001 + random.ExpFloat64()*0.003),
			Sent: &history.Sent{Purpose: history.PurposeLoad, Client: "dynamic", User: "admin", Server: server, Verb: "list", GVR: g,
				Path: "/apis/" + g.String()},
			Received: &history.Received{}}
		answerLikeBuiltin(&o, t, t >= replaced[server]+5.7, t >= replaced["a"]+5.7, replaced[server], random)
		h.Operations = append(h.Operations, o)
	}
	return h
}

// answerLikeBuiltin answers as the kube-apiserver's own proxy did in runs: down while replaced, 503
// while its peer is cut off, 404 after its own restart during the cut.
func answerLikeBuiltin(o *history.Operation, t float64, isNew, anyNew bool, replaced float64, random *rand.Rand) {
	switch {
	case t < 3.6, t > replaced+0.5 && t < replaced+5.6:
		o.Failure = history.FailureRefused
	case o.Server == "c" && t > 46 && t < 52:
		o.Failure = history.FailureTimeout
	case o.GVR == nobodys:
		o.Status, o.Body, o.Missing = 404, history.BodyText, history.MissingResource
	case o.GVR == configMaps && random.IntN(12) == 0:
		o.Status, o.Missing = 404, history.MissingObject
	case o.GVR == configMaps, isNew:
		o.Status = 200
	case !anyNew:
		o.Status, o.Missing = 404, history.MissingResource
	case o.Server == "b" && t > 26 && t < 30:
		o.Status, o.Reason = 503, "ServiceUnavailable"
	case o.Server == "b" && t < 56, o.Server == "c" && t > 52 && t < 55:
		o.Status, o.Missing, o.Reason = 404, history.MissingResource, "NotFound"
	default:
		o.Status = 200
	}
	if o.Status == 200 && random.IntN(700) == 0 {
		o.Status = 500
	}
}
