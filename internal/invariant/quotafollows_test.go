package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// resourceQuota is a quota in namespace n that counts ConfigMaps. used is the number in its status.
// If used is below 0, the status gives no number.
func resourceQuota(used int64) history.Object {
	return history.Object{
		Key: "/registry/resourcequotas/n/q", APIVersion: "v1", Kind: "ResourceQuota", Namespace: "n", Name: "q", UID: "uid-q",
		Counts: []history.Count{counting("", "configmaps", used)},
	}
}

func counting(group, resource string, used int64) history.Count {
	c := history.Count{Group: group, Resource: resource}
	if used >= 0 {
		c.Used = &used
	}
	return c
}

// definition is the definition of a custom resource.
func definition(name string) history.Object {
	return history.Object{Key: "/registry/apiextensions.k8s.io/customresourcedefinitions/" + name, APIVersion: "apiextensions.k8s.io/v1",
		Kind: "CustomResourceDefinition", Name: name, UID: "uid-" + name}
}

// ends moves the end of the story.
func (s *story) ends(at float64) *story {
	s.h.End.At = sec(at)
	return s
}

// counts makes a quota count these resources.
func counts(all ...history.Count) func(*history.Object) {
	return func(o *history.Object) { o.Counts = all }
}

// counted adds a quota in a namespace of its own. Its status is wrong if wrong is true.
func (s *story) counted(wrong bool) *story {
	used := int64(2)
	if wrong {
		used = 1
	}
	s.put(20, within("limited", configMap("counted-1")), within("limited", configMap("counted-2")))
	return s.put(21, within("limited", resourceQuota(used)))
}

func TestQuotaFollows(t *testing.T) {
	const name = "QuotaFollows"
	made := func() *story {
		return tell(name).ask(190, "a", widgets, 200).put(9, namespace("n")).put(10, configMap("x"), configMap("y")).put(11, resourceQuota(-1))
	}
	of := func(n int64) func(*history.Object) { return counts(counting("apps", "gadgets", n)) }
	custom := within("n", gadget("x"))
	custom.Key = "/registry/apps/gadgets/n/x"
	// defined defines a custom resource, of which the namespace has one object.
	defined := func(at float64) *story {
		return tell(name).put(at, definition("gadgets.apps")).put(9, namespace("n")).put(12, custom).put(13, resourceQuota(-1))
	}
	used := func(n int64) func(*history.Object) { return counts(counting("", "configmaps", n)) }
	passes := want{outcome: OutcomePass, checked: 1}
	fails := want{outcome: OutcomeFail, checked: 1, violations: 1}
	unexercised := want{outcome: OutcomeInconclusive, reason: "not exercised"}
	checkStories(t, name, []storyCase{
		{"the status follows", made().change(15, "q", used(2)), passes},
		{"just in time", made().change(71, "q", used(2)), passes},
		{"too late", made().change(71.1, "q", used(2)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "ResourceQuota n/q miscounts configmaps",
				sentence: "namespace n has had 2 objects of configmaps, and the last disturbance was over at 1s. At 1m11s the status of ResourceQuota n/q does not say how many"}},
		{"the status is wrong", made().change(15, "q", used(3)), want{outcome: OutcomeFail, checked: 1, violations: 1, sentence: "says that 3 are used"}},
		{"the number changes, and the status follows", made().change(15, "q", used(2)).remove(100, "x").change(101, "q", used(1)), want{outcome: OutcomePass, checked: 2}},
		{"the number changes, and the status does not", made().change(15, "q", used(2)).remove(100, "x"), want{outcome: OutcomeFail, checked: 2, violations: 1}},
		{"the number changes again before the status has to follow", made().remove(40, "x").change(50, "q", used(1)), passes},
		{"the number changes all the time", made().remove(60, "x").put(110, configMap("z")).put(160, configMap("v")),
			want{outcome: OutcomeInconclusive, reason: "too early for 1 object"}},
		{"objects of other namespaces do not count", made().put(12, within("m", configMap("z"))).change(15, "q", used(2)), passes},
		{"objects of other kinds do not count", made().put(12, gadget("z")).change(15, "q", used(2)), passes},
		{"an object that is being deleted counts", made().mark(12, "x", "some/finalizer").change(15, "q", used(2)), passes},
		{"and one that is gone does not", made().mark(12, "x", "some/finalizer").remove(13, "x").change(15, "q", used(2)), fails},
		{"a kind that none of the objects has", made().change(15, "q", counts(counting("apps", "gadgets", 0))), passes},
		{"the kind of another group", made().change(15, "q", counts(counting("apps", "configmaps", 2))), fails},
		{"one of two counts is wrong", made().change(15, "q", counts(counting("", "configmaps", 2), counting("apps", "gadgets", -1))),
			want{outcome: OutcomeFail, checked: 2, violations: 1, cause: "miscounts gadgets.apps"}},
		{"a quota that counts no objects", made().change(15, "q", counts()), unexercised},
		{"Leases, which the history leaves out", made().change(15, "q", counts(counting("coordination.k8s.io", "leases", 0))),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "unknown for all"}},
		{"the quota is removed before its status has to follow", made().remove(50, "q"), unexercised},
		{"the quota is removed after that", made().remove(80, "q"), fails},
		{"the quota is being deleted", made().mark(50, "q", "some/finalizer"), unexercised},
		{"its namespace is being deleted", made().mark(50, "n"), unexercised},
		{"another namespace is being deleted", made().put(9, namespace("m")).mark(50, "m"), fails},
		{"its namespace is deleted later", made().mark(80, "n"), fails},
		{"a custom resource that was defined just before", defined(10).change(15, "q", of(1)).remove(49, "x").change(408, "q", of(0)).ends(450), passes},
		{"a custom resource that was defined just before, and is never counted", defined(10).change(15, "q", of(1)).remove(49, "x").ends(450), fails},
		{"a custom resource that was defined earlier", defined(10).change(15, "q", of(1)).remove(50, "x").change(111, "q", of(0)).ends(450),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"another custom resource that was defined just before", defined(10).change(15, "q", of(1)).put(40, definition("others.example.com")).
			remove(50, "x").change(111, "q", of(0)).ends(450), want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"a custom resource that is defined afterwards", defined(10).change(15, "q", of(1)).remove(50, "x").put(51, definition("gadgets.apps")).
			change(111, "q", of(0)).ends(450), want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"a fault is on until late", made().cut("b", "a", 20, 100).change(155, "q", used(2)), passes},
		{"a fault was on, and the time after it is over", made().cut("b", "a", 20, 100).change(161, "q", used(2)), fails},
		{"the run ends too early after a fault", made().cut("b", "a", 20, 150),
			want{outcome: OutcomeInconclusive, reason: "too early for 1 object", fact: "the run ended too early: 1"}},
		{"the machine was overloaded when it was due", made().slow(69, 76, "a", "b", "c"),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "overloaded"}},
		{"no quota", tell(name).ask(190, "a", widgets, 200).put(10, configMap("x")), unexercised},
	})
}
