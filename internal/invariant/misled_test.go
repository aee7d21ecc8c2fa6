package invariant

import (
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

const counter = "system:serviceaccount:kube-system:resourcequota-controller"

// without is a merged document that lists no gadgets.
var without = doc("without", line(widgets))

// discovers adds a controller's request for the merged document.
func (s *story) discovers(at float64, server, user string, options ...func(*history.Request)) *story {
	about := func(q *history.Request) { q.Path, q.GVR = "/apis?timeout=32s", history.GVR{} }
	return s.request(at, server, user, "get", history.GVR{}, "", "", 200, append([]func(*history.Request){about}, options...)...)
}

// An orphan was leaked because the garbage collector never heard of the kind of its owner. The
// story has the answer that did not list the kind.
func TestADocumentThatLacksAKindIsNamed(t *testing.T) {
	leaked := func() *story {
		return tell("OrphansCollected").runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3").
			put(40, gadget("o")).put(41, configMap("x", gadget("o"))).remove(60, "o")
	}
	answered := func(status int) func(*history.Request) { return func(q *history.Request) { q.Status = status } }
	passedOn := func(q *history.Request) { q.Rerouted = true }
	none := func(s *story) *story { s.h.Run.Subject = "none"; return s }
	load := func(s *story) *story {
		return s.discover(49, "b", "/apis", without).discover(51, "b", "/apis", without)
	}
	for name, c := range map[string]struct {
		story *story
		at    float64 // of the answer that is named; 0: none
	}{
		"the load got documents without it":         {load(leaked().discovers(50, "b", collector)), 50},
		"confirmed by 304":                          {load(leaked().discovers(50, "b", collector, answered(304))), 50},
		"the load got one before":                   {leaked().discovers(50, "b", collector).discover(49, "b", "/apis", without), 50},
		"the load got one after":                    {leaked().discovers(50, "b", collector).discover(51, "b", "/apis", without), 50},
		"there is no proxy":                         {none(leaked().discovers(50, "b", collector)), 50},
		"the same before the owner existed":         {none(leaked().discovers(30, "b", collector)), 30},
		"and replaced before the owner was deleted": {none(leaked().discovers(30, "b", collector).discovers(50, "b", collector)), 50},
		"the kind was listed when the owner was deleted, and then vanished": {
			none(leaked().discovers(50, "a", collector).discovers(70, "b", collector)), 70},
		"the kind was listed only later":           {none(leaked().discovers(50, "b", collector).discovers(70, "a", collector)), 50},
		"it vanished after the bound":              {none(leaked().discovers(50, "a", collector).discovers(125, "b", collector)), 0},
		"it is unknown what the proxy added":       {leaked().discovers(50, "b", collector), 0},
		"the load got one with it before":          {leaked().discovers(50, "b", collector).discover(49, "b", "/apis", mergedDoc).discover(51, "b", "/apis", without), 0},
		"the load got one with it after":           {leaked().discovers(50, "b", collector).discover(49, "b", "/apis", without).discover(51, "b", "/apis", mergedDoc), 0},
		"the load got one much earlier":            {leaked().discovers(50, "b", collector).discover(44, "b", "/apis", without), 0},
		"the load got one from another server":     {leaked().discovers(50, "b", collector).discover(49, "c", "/apis", without), 0},
		"the load got one of the core group":       {leaked().discovers(50, "b", collector).discover(49, "b", "/api", coreDoc), 0},
		"the asked server serves it itself":        {load(none(leaked().discovers(50, "a", collector))), 0},
		"another client got the document":          {load(leaked().discovers(50, "b", replicas)), 0},
		"it was an error":                          {load(leaked().discovers(50, "b", collector, answered(503))), 0},
		"a peer had asked":                         {load(leaked().discovers(50, "b", collector, passedOn)), 0},
		"no server served it":                      {none(leaked().kill("a", 45).discovers(50, "b", collector)), 0},
		"another server may have come to serve it": {none(leaked().changed("b", 45, 55, newDoc).discovers(50, "b", collector)), 0},
		"nothing was asked":                        {load(leaked()), 0},
	} {
		e := verdictOf(t, c.story.h, "OrphansCollected").Evidence[0]
		if c.at == 0 {
			if e.Misled != nil || e.Signature != (Signature{Invariant: "OrphansCollected", Mechanism: MechanismController, Wrong: "an orphan was not collected"}) {
				t.Errorf("%s: %+v\n%+v", name, e.Misled, e.Signature)
			}
			continue
		}
		if e.Misled == nil {
			t.Errorf("%s: no answer is named", name)
			continue
		}
		m := *e.Misled
		want := Misled{
			Controller: collector, Agent: m.Agent, Server: "b", At: sec(c.at), ID: m.ID, Verb: "get", Path: "/apis?timeout=32s", Status: m.Status, Lacks: gadgets, Basis: m.Basis,
		}
		if m != want || m.ID == "" || m.Agent == "" || !strings.Contains(m.Basis, "b does not serve it itself") {
			t.Errorf("%s: %+v", name, m)
		}
		if e.Signature.Mechanism != MechanismDiscovery || e.Signature.Roles != RoleOlder || e.Signature.Reach != ReachAll || e.Asked != "b" || len(e.Operations) != 1 || len(e.Candidates) != 1 || e.Candidates[0].Server != "a" {
			t.Errorf("%s: %+v", name, e)
		}
		if !strings.Contains(e.Sentence, "did not list apps/v2/gadgets: b does not serve it itself") {
			t.Errorf("%s: %s", name, e.Sentence)
		}
	}
}

// Each invariant names the wrong answer that the controller got before it did harm.
func TestEachHarmNamesTheAnswerThatCameBefore(t *testing.T) {
	begin := func(name string) *story {
		s := tell(name)
		s.h.Run.Subject = "none"
		return s.discovers(50, "b", collector).discovers(50, "b", cleaner).discovers(50, "b", counter)
	}
	within := func(o history.Object) history.Object {
		o.Namespace, o.Key = "n", "/registry/gadgets/n/"+o.Name
		return o
	}
	quota := resourceQuota(-1)
	quota.Counts = []history.Count{counting("apps", "gadgets", -1)}
	for name, c := range map[string]struct {
		story      *story
		controller string
	}{
		"OrphansCollected": {begin("OrphansCollected").put(40, gadget("o")).put(41, configMap("x", gadget("o"))).remove(60, "o"), collector},
		"DeletionEnds":     {begin("DeletionEnds").put(40, gadget("o")).mark(60, "o", "foregroundDeletion"), collector},
		"DeletionEnds of a dependent": {begin("DeletionEnds").put(40, configMap("o"), func() history.Object {
			d := gadget("d")
			d.Owners = configMap("", configMap("o")).Owners
			return within(d)
		}()).mark(60, "o", "foregroundDeletion"), collector},
		"DeletionEnds of a namespace": {begin("DeletionEnds").put(40, namespace("n")).put(41, within(gadget("g"))).mark(60, "n"), cleaner},
		"QuotaFollows":                {begin("QuotaFollows").put(40, within(gadget("g"))).put(41, quota), counter},
		"NothingLeftBehind": {begin("NothingLeftBehind").put(40, namespace("n")).put(41, within(gadget("g"))).mark(60, "n").
			request(61, "b", cleaner, "update", history.GVR{}, "", "n", 200, finalize).remove(61.01, "n"), cleaner},
		"NothingLeftBehind of an unknown controller": {begin("NothingLeftBehind").put(40, namespace("n")).put(41, within(gadget("g"))).mark(60, "n").remove(61.01, "n"), cleaner},
	} {
		invariant, _, _ := strings.Cut(name, " ")
		v := verdictOf(t, c.story.h, invariant)
		if len(v.Evidence) == 0 || v.Evidence[0].Misled == nil || v.Evidence[0].Misled.Controller != c.controller || v.Evidence[0].Misled.Lacks != gadgets {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// A 404 for an object that exists misleads as well, and one for an object that is gone does not.
func TestADenialOfAnOwnerIsNamed(t *testing.T) {
	for at, named := range map[float64]bool{50: true, 70: false} {
		s := tell("OrphansCollected").put(40, gadget("o")).put(41, configMap("x", gadget("o"))).remove(60, "o").
			request(at, "b", collector, "get", gadgets, "", "o", 404)
		e := verdictOf(t, s.h, "OrphansCollected").Evidence[0]
		if (e.Misled != nil) != named {
			t.Errorf("at %v s: %+v", at, e.Misled)
		}
		if named && (e.Misled.Status != 404 || e.Misled.Basis != "" || e.Signature.Mechanism != MechanismResource) {
			t.Errorf("%+v, %+v", e.Misled, e.Signature)
		}
	}
}

// The collector learns of owners through informers that it shares. These informers have a user of
// their own.
func TestADenialToTheInformersOfACollectorIsNamed(t *testing.T) {
	for agent, named := range map[string]bool{"kube-controller-manager/v1.36.3 kubernetes/$Format/metadata-informers": true, "kube-controller-manager/v1.36.3 kubernetes/$Format/informers": false} {
		s := tell("OrphansCollected").put(40, gadget("o")).put(41, configMap("x", gadget("o"))).remove(60, "o").
			request(50, "b", "system:kube-controller-manager", "watch", gadgets, "", "", 404)
		s.h.Requests[len(s.h.Requests)-1].Agent = agent
		if e := verdictOf(t, s.h, "OrphansCollected").Evidence[0]; (e.Misled != nil) != named {
			t.Errorf("%s: %+v", agent, e.Misled)
		}
	}
}
