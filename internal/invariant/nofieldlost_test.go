package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// with sets the fields of an object.
func with(fields ...string) func(*history.Object) {
	return func(o *history.Object) { o.Fields = fields }
}

func having(o history.Object, fields ...string) history.Object {
	o.Fields = fields
	return o
}

// widget is an object without a namespace, of a resource that every version serves.
func widget(name string) history.Object {
	return history.Object{Key: "/registry/widgets/" + name, APIVersion: "apps/v1", Kind: "Widget", Name: name, UID: "uid-" + name}
}

func ofName(name string) func(*history.Operation) {
	return func(o *history.Operation) { o.Name = name }
}

func rerouted(q *history.Request) { q.Rerouted = true }

// rewritten makes steps of the run rewrite an object through a server that lacks its resource. If
// wrong is set, a field is lost.
func (s *story) rewritten(wrong bool) *story {
	after := []string{"metadata.name", "spec.one", "spec.two"}
	if wrong {
		after = after[:2]
	}
	return s.put(107, having(gadget("rewritten"), "metadata.name", "spec.one", "spec.two")).
		request(108, "b", "admin", "update", gadgets, "", "rewritten", 200, own).change(108.01, "rewritten", with(after...))
}

func TestNoFieldLost(t *testing.T) {
	const name = "NoFieldLost"
	made := func(o history.Object) *story {
		return tell(name).runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3").ask(190, "a", widgets, 200).put(10, having(o, "spec.one", "spec.two"))
	}
	// write is a successful request of a step.
	write := func(s *story, at float64, server, verb string, g history.GVR) *story {
		return s.request(at, server, "admin", verb, g, "", "x", 200, own)
	}
	updated := func() *story { return write(made(gadget("x")), 20, "b", "update", gadgets) }
	patched := func() *story { return made(gadget("x")).ask(20, "b", gadgets, 200, verb("patch"), ofName("x")) }
	whole, poor := with("metadata.annotations.r", "spec.one", "spec.two"), with("metadata.annotations.r", "spec.one")
	passes := want{outcome: OutcomePass, checked: 1}
	fails := want{outcome: OutcomeFail, checked: 1, violations: 1}
	unexercised := want{outcome: OutcomeInconclusive, reason: "not exercised"}
	checkStories(t, name, []storyCase{
		{"an update through a server that lacks the resource", updated().change(20.01, "x", whole), want{outcome: OutcomePass, checked: 1, fact: "with all fields kept: 1"}},
		{"a patch of the load through it", patched().change(20.01, "x", whole), passes},
		{"seen late", updated().change(21, "x", whole), passes},
		{"an update loses a field", updated().change(20.01, "x", poor),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "a field was lost by update of Gadget x", sentence: "lost spec.two in revision 101, at 20.01s"}},
		{"a patch of a step loses a field", write(made(gadget("x")), 20, "b", "patch", gadgets).change(20.01, "x", poor), fails},
		{"a patch of the load loses a field", patched().change(20.01, "x", poor), fails},
		{"and the object was deleted meanwhile, which removes no field", patched().ask(20, "b", gadgets, 200, verb("delete"), ofName("x")).change(20.01, "x", poor), fails},
		{"and the load had updated it long before", patched().ask(3, "b", gadgets, 200, verb("update"), ofName("x")).change(20.01, "x", poor), fails},
		{"and the load updated another one", patched().ask(20, "b", gadgets, 200, verb("update"), ofName("y")).change(20.01, "x", poor), fails},
		{"and the load updated one of another resource", patched().ask(20, "b", widgets, 200, verb("update"), ofName("x")).change(20.01, "x", poor), fails},
		{"and an update of the load was refused", patched().ask(20, "b", gadgets, 409, verb("update"), ofName("x")).change(20.01, "x", poor), fails},
		{"the load updated it as well, and may have removed the field", patched().ask(20, "b", gadgets, 200, verb("update"), ofName("x")).change(20.01, "x", poor), unexercised},
		{"an update of the load got no answer", patched().ask(20, "b", gadgets, 0, verb("update"), ofName("x")).change(20.01, "x", poor), unexercised},
		{"a controller updated it as well", patched().request(20, "b", collector, "update", gadgets, "", "x", 200).change(20.01, "x", poor), unexercised},
		{"only the load updated it, which may remove fields", made(gadget("x")).ask(20, "b", gadgets, 200, verb("update"), ofName("x")).change(20.01, "x", poor), unexercised},
		{"only its status was patched, which may name a list", made(gadget("x")).ask(20, "b", gadgets, 200, verb("patch"), sub("status"), ofName("x")).change(20.01, "x", poor), unexercised},
		{"a dry run", made(gadget("x")).ask(20, "b", gadgets, 200, verb("patch"), ofName("x"), func(o *history.Operation) { o.Path += "?dryRun=All" }).change(20.01, "x", poor), unexercised},
		{"a peer's record of a request that was passed on to it", made(gadget("x")).request(20, "a", "admin", "update", gadgets, "", "x", 200, own, rerouted).change(20.01, "x", poor), unexercised},
		{"nobody wrote it", made(gadget("x")).change(20.01, "x", poor), unexercised},
		{"it was removed", updated().remove(20.01, "x"), unexercised},
		{"its type is unknown", updated().change(20.01, "x", with()), want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "unknown for all"}},

		{"an older server serves it itself, and loses what it does not know", write(made(widget("x")), 20, "b", "update", widgets).change(20.01, "x", poor),
			want{outcome: OutcomeInconclusive, fact: "newer than itself: 1", reason: "not exercised"}},
		{"the newest server serves it itself", write(made(widget("x")), 20, "a", "update", widgets).change(20.01, "x", poor), fails},
		{"all servers are of one version", write(made(widget("x")).runs("a", "v1.36.3"), 20, "b", "update", widgets).change(20.01, "x", poor), fails},
		{"it is passed on by an older server", write(made(gadget("x")), 20, "b", "update", gadgets).change(20.01, "x", poor), fails},
		{"only what the asked servers serve is written", write(made(widget("x")), 20, "b", "update", widgets).change(20.01, "x", whole),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "no update and no patch of what the asked server does not serve was judged"}},
	})
}

// named adds a write of a step that names fields, and how much of it the answer lacks.
func (s *story) named(at float64, server string, g history.GVR, status int, validation string, lost ...string) *story {
	s.request(at, server, "admin", "create", g, "n", "", status, own, func(q *history.Request) { q.Path += "?fieldValidation=" + validation })
	s.h.Written = append(s.h.Written, history.Written{ID: s.h.Requests[len(s.h.Requests)-1].ID, Lost: lost})
	return s
}

// gated gives all servers feature gates.
func gated(s *story, list string) *story {
	s.h.Run.Own = &history.OwnFlags{Flags: []string{"feature-gates=" + list}}
	return s
}

// Writes that name fields are judged by the recorded tables of two versions.
func TestNamedFieldsAreStoredOrCounted(t *testing.T) {
	deployments := history.GVR{Group: "apps", Version: "v1", Resource: "deployments"}
	served := func(version string) history.Document { return doc("of "+version, line(widgets), line(deployments)) }
	const bundle, other = "spec.template.spec.volumes[0].projected.sources[0].clusterTrustBundle.path", "spec.template.spec.containers[0].name"
	begun := func() *story {
		s := blank("NoFieldLost").start("a", 0, served("new")).start("b", 0, served("old")).ask(190, "a", widgets, 200)
		return s.runs("a", "v1.37.1").runs("b", "v1.36.3")
	}
	passes := want{outcome: OutcomePass, checked: 1, fact: "writes that name fields by which versions differ: 1"}
	counted := want{outcome: OutcomePass, checked: 1, fact: "drops: of deployments, v1.36"}
	fails := want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "a field was lost by create of deployments"}
	checkStories(t, "NoFieldLost", []storyCase{
		{"stored", begun().named(20, "a", deployments, 201, "Strict"), passes},
		{"refused", begun().named(20, "b", deployments, 422, "Strict"), passes},
		{"no server answered well", begun().named(20, "b", deployments, 503, "Strict"), want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"no log has it", begun().named(20, "b", deployments, 201, "Strict").idle(), want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "unknown for all"}},
		{"the older version drops it in silence", begun().named(20, "b", deployments, 201, "Strict", bundle),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "a field that another version stores was dropped in silence by create of deployments", sentence: "v1.36.3 drops and v1.37.1 stores spec.template.spec.volumes[*].projected.sources[*].clusterTrustBundle"}},
		{"and did not say that it would not", begun().named(20, "b", deployments, 201, "Warn", bundle), counted},
		{"and so does the other one, which emulates it", begun().emulating("1.36", "a").named(20, "b", deployments, 201, "Strict", bundle), counted},
		{"the other one drops it itself", begun().emulating("1.36", "a").named(20, "a", deployments, 201, "Strict", bundle), counted},
		{"with its gates off, no server stores it", gated(begun(), "ClusterTrustBundleProjection=false,ClusterTrustBundle=false").named(20, "b", deployments, 201, "Strict", bundle), counted},
		{"nor does the newer version", gated(begun(), "ClusterTrustBundleProjection=false,ClusterTrustBundle=false").named(20, "a", deployments, 201, "Strict", bundle), want{outcome: OutcomePass, checked: 1, fact: "v1.37.1 drops"}},
		{"another gate is off", gated(begun(), "PodCertificateRequest=false").named(20, "b", deployments, 201, "Strict", bundle), want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "a field that another version stores was dropped in silence by create of deployments"}},
		{"the newer version loses it", begun().named(20, "a", deployments, 201, "Strict", bundle), fails},
		{"the older one loses what it knows", begun().named(20, "b", deployments, 201, "Warn", other), fails},
		{"and something else with it", begun().named(20, "b", deployments, 201, "Warn", bundle, other), fails},
		{"the versions are the same", begun().runs("a", "v1.36.3").named(20, "b", deployments, 201, "Strict", bundle), fails},
		{"a pair that is not recorded", begun().runs("a", "v1.47.0").named(20, "b", deployments, 201, "Strict", bundle), fails},
	})
}
