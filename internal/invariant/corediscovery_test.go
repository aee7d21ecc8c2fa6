package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// KEP-4020 merges nothing at /api, so each server may list its own subresources below a resource.
func TestCoreDiscoveryMayDifferInSubresources(t *testing.T) {
	own := doc("core-old", line(pods, "status"))
	nodes := line(history.GVR{Version: "v1", Resource: "nodes"})
	rich := doc("core-rich", line(pods, "status", "resize"), nodes)
	verbs := doc("core-verbs", history.Resource{GVR: pods, Kind: "K", Verbs: []string{"get"}, Subresources: line(pods, "status", "resize").Subresources})
	kind := doc("core-kind", func() history.Resource { r := line(pods, "status", "resize"); r.Kind = "Other"; return r }())
	bare := doc("core-bare", line(pods, "resize"))
	made := doc("core-made", line(pods, "status", "resize", "none"))
	for _, c := range []struct {
		name                               string
		answered                           history.Document
		deterministic, complete, converges Outcome
		options                            []func(*history.Operation)
	}{
		{"others' subresources are missing", own, OutcomePass, OutcomePass, OutcomePass, nil},
		{"a resource is missing", doc("core-none", line(history.GVR{Version: "v1", Resource: "nodes"})), OutcomeFail, OutcomeFail, OutcomeFail, nil},
		{"a resource is made up", rich, OutcomeFail, OutcomeFail, OutcomeFail, nil},
		{"a verb of a resource is missing", verbs, OutcomeFail, OutcomeFail, OutcomeFail, nil},
		{"another kind", kind, OutcomeFail, OutcomePass, OutcomeFail, nil},
		{"its own subresource is missing", bare, OutcomePass, OutcomeFail, OutcomeFail, nil},
		{"a subresource is made up", made, OutcomePass, OutcomeFail, OutcomeFail, nil},
		{"other subresources by the same ETag", own, OutcomeFail, OutcomePass, OutcomeFail, []func(*history.Operation){etag("etag-core")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tell()
			for at := 20.0; at <= 190; at++ {
				s.discover(at, "a", "/api", coreDoc).discover(at, "c", "/api", coreDoc).discover(at, "b", "/api", c.answered, c.options...)
			}
			for name, want := range map[string]Outcome{"DiscoveryDeterministic": c.deterministic, "DiscoveryComplete": c.complete, "Converges": c.converges} {
				if v := verdictOf(t, s.h, name); v.Outcome != want {
					t.Errorf("%s is %s, want %s: %s %+v", name, v.Outcome, want, v.Reason, v.Evidence)
				}
			}
		})
	}
	t.Run("/apis must list the subresources of other servers", func(t *testing.T) {
		scaled := doc("new-scaled", line(pods), line(widgets, "scale"), line(gadgets))
		s := blank().start("a", 0, scaled).start("b", 0, oldDoc).start("c", 0, oldDoc).discover(20, "b", "/apis", mergedDoc)
		want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "/apis lacks what is served", sentence: "lists apps/v1/widgets/scale"}.check(t, verdictOf(t, s.h, "DiscoveryComplete"))
	})
	t.Run("at /apis nothing is left out", func(t *testing.T) {
		s := tell()
		for at := 20.0; at <= 190; at++ {
			s.discover(at, "a", "/apis", doc("scaled", line(widgets, "scale"), line(gadgets))).discover(at, "b", "/apis", mergedDoc)
		}
		if v := verdictOf(t, s.h, "DiscoveryDeterministic"); v.Outcome != OutcomeFail {
			t.Errorf("%s", v.Outcome)
		}
	})
}
