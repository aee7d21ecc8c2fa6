package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// migrationOf is a migration of a resource in some state.
func migrationOf(group, resource string, conditions ...string) history.Object {
	return history.Object{
		APIVersion: "storagemigration.k8s.io/v1", Kind: "StorageVersionMigration", Name: "m", UID: "uid-m", Conditions: conditions,
		Migrates: &history.GVR{Group: group, Resource: resource},
	}
}

// migrated adds a migration of gadgets, which fails if wrong is set.
func (s *story) migrated(wrong bool) *story {
	ended := "Succeeded"
	if wrong {
		ended = "Failed"
	}
	return s.put(30, migrationOf("apps", "gadgets")).put(35, migrationOf("apps", "gadgets", ended))
}

func TestMigrationsSucceed(t *testing.T) {
	const name = "MigrationsSucceed"
	asked := func(group, resource string) *story {
		return tell(name).ask(190, "a", widgets, 200).put(10, gadget("o")).put(30, migrationOf(group, resource))
	}
	ours := func() *story { return asked("apps", "gadgets") }
	is := func(conditions ...string) func(*history.Object) {
		return func(o *history.Object) { o.Conditions = conditions }
	}
	unexercised := want{outcome: OutcomeInconclusive, reason: "not exercised"}
	checkStories(t, name, []storyCase{
		{"it succeeds", ours().change(31, "m", is("Running")).change(35, "m", is("Succeeded")), want{outcome: OutcomePass, checked: 1}},
		{"just in time", ours().change(90, "m", is("Succeeded")), want{outcome: OutcomePass, checked: 1}},
		{"too late", ours().change(90.1, "m", is("Succeeded")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "the migration of gadgets.apps did not succeed", sentence: "it has neither succeeded nor failed by 1m30s"}},
		{"it fails", ours().change(35, "m", is("Failed")), want{outcome: OutcomeFail, checked: 1, violations: 1, sentence: "it has failed"}},
		{"it never ends", ours().change(31, "m", is("Running")), want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"no controller handles it", ours(), want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"of a resource without objects", asked("skewproof.invalid", "nosuchthings"), unexercised},
		{"it is deleted", ours().remove(40, "m"), unexercised},
		{"a fault is on until late", ours().cut("b", "a", 20, 120).change(179, "m", is("Succeeded")), want{outcome: OutcomePass, checked: 1}},
		{"the run ends too early", ours().cut("b", "a", 20, 150), want{outcome: OutcomeInconclusive, reason: "too early for 1 object", fact: "the run ended too early: 1"}},
		{"none", tell(name).ask(190, "a", widgets, 200).put(10, gadget("o")), unexercised},
	})
}

// The controller asks for the document of the group version before it migrates.
func TestAMigrationWithoutADocumentNamesIt(t *testing.T) {
	const controller = "system:serviceaccount:kube-system:storage-version-migrator-controller"
	document := func(q *history.Request) { q.Path = "/apis/apps/v2?timeout=32s" }
	for name, c := range map[string]struct {
		server, user, subject string
		status                int
		change                func(*history.Request)
		then                  func(*story)
		named                 bool
	}{
		"by a server that does not serve it":   {"b", controller, "builtin", 200, document, nil, true},
		"without a proxy":                      {"b", controller, "none", 200, document, nil, true},
		"by a sidecar, which merges documents": {"b", controller, "reference", 200, document, nil, false},
		"by a server that serves it":           {"a", controller, "builtin", 200, document, nil, false},
		"for another controller":               {"b", collector, "builtin", 200, document, nil, false},
		"of another group version":             {"b", controller, "builtin", 200, func(q *history.Request) { q.Path = "/apis/apps/v1" }, nil, false},
		"of an object in it":                   {"b", controller, "builtin", 200, func(q *history.Request) { q.Path = "/apis/apps/v2/gadgets" }, nil, false},
		"that was not sent":                    {"b", controller, "builtin", 503, document, nil, false},
		"before the migration was asked for":   {"b", controller, "builtin", 200, func(q *history.Request) { document(q); q.Start, q.End = sec(20), sec(21) }, nil, false},
		"after it had to be over":              {"b", controller, "builtin", 200, func(q *history.Request) { document(q); q.Start, q.End = sec(95), sec(96) }, nil, false},
		"and then by a server that serves it": {"b", controller, "builtin", 200, document, func(s *story) {
			s.request(60, "a", controller, "get", history.GVR{Group: "apps", Version: "v2"}, "", "", 200, document)
		}, false},
		"and then by one that does not serve it": {"b", controller, "builtin", 200, document, func(s *story) {
			s.request(60, "c", controller, "get", history.GVR{Group: "apps", Version: "v2"}, "", "", 200, document)
		}, true},
		"of a migration that has failed": {"b", controller, "builtin", 200, document, func(s *story) {
			s.change(70, "m", func(o *history.Object) { o.Conditions = []string{"Failed"} })
		}, false},
	} {
		s := tell("MigrationsSucceed").runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3").ask(190, "a", widgets, 200).put(10, gadget("o")).
			put(30, migrationOf("apps", "gadgets"))
		s.h.Run.Subject = c.subject
		s.request(50, c.server, c.user, "get", history.GVR{Group: "apps", Version: "v2"}, "", "", c.status, c.change)
		if c.then != nil {
			c.then(s)
		}
		e := verdictOf(t, s.h, "MigrationsSucceed").Evidence[0]
		if (e.Misled != nil) != c.named || (e.Signature.Mechanism == MechanismGroupDocument) != c.named {
			t.Errorf("%s: %+v, %+v", name, e.Misled, e.Signature)
		}
	}
}
