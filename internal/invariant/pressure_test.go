package invariant

import (
	"reflect"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// The test tries each class with a request that counts and similar requests that do not.
func TestClassesOfPressure(t *testing.T) {
	streaming := func(status, events int) func(*history.Operation) {
		return func(o *history.Operation) { o.Verb, o.Status, o.Events = "watch", status, events }
	}
	query := func(q string) func(*history.Operation) { return func(o *history.Operation) { o.Path += "?" + q } }
	forged := func(o *history.Operation) { o.Rerouted = true }
	document := func(verb string, status int) func(*history.Operation) {
		return func(o *history.Operation) { o.Verb, o.Status, o.Document = verb, status, "own" }
	}
	canceled := failed(history.FailureCanceled)
	none := history.GVR{}
	for _, c := range []struct {
		class  string // the field of history.Pressure
		counts *story
		not    []*story
	}{
		{"Operations", tell().ask(40, "a", widgets, 404), []*story{tell().ask(40, "a", widgets, 0)}},
		{"Skewed", tell().ask(40, "b", gadgets, 404), []*story{tell().ask(40, "a", gadgets, 200), tell().ask(40, "b", ghosts, 404), tell().ask(40, "b", gadgets, 0, canceled)}},
		{"Unreachable", tell().cut("b", "a", 30, 60).ask(40, "b", gadgets, 503), []*story{tell().cut("c", "a", 30, 60).ask(40, "b", gadgets, 503)}},
		{"Unserved", tell().ask(40, "b", ghosts, 404), []*story{tell().ask(40, "b", gadgets, 404)}},
		{"PassedOn", tell().ask(40, "b", gadgets, 200).hop("b", 0, 10, false).hop("a", 2, 8, true), []*story{
			tell().ask(40, "b", gadgets, 200).hop("b", 0, 10, false), tell().ask(40, "b", gadgets, 200),
		}},
		{"Writes", tell().ask(40, "b", gadgets, 201, verb("create")), []*story{
			tell().ask(40, "b", gadgets, 403, verb("create")), tell().ask(40, "b", gadgets, 201, verb("create"), query("dryRun=All")),
			tell().ask(40, "b", gadgets, 200), tell().ask(40, "a", gadgets, 201, verb("create")),
		}},
		{"Subresources", tell().ask(40, "b", pods, 404, sub("resize")), []*story{
			tell().ask(40, "b", pods, 200, sub("status")), tell().served("a", 2, doc("newer", line(pods), line(gadgets, "status"))).ask(40, "b", gadgets, 404, sub("status")), tell().ask(40, "b", pods, 0, sub("resize")),
		}},
		{"Watches", tell().ask(40, "b", gadgets, 200, streaming(200, 1)), []*story{
			tell().ask(40, "b", gadgets, 200, streaming(200, 0)), tell().ask(40, "b", gadgets, 200, streaming(101, 1)),
			tell().ask(40, "b", gadgets, 200, streaming(404, 1)), tell().ask(40, "a", gadgets, 200, streaming(200, 1)),
		}},
		{"Upgrades", tell().ask(40, "b", gadgets, 101, streaming(101, 1)), []*story{
			tell().ask(40, "b", gadgets, 101, streaming(101, 0)), tell().ask(40, "b", gadgets, 200, streaming(200, 1)),
			tell().ask(40, "a", gadgets, 101, streaming(101, 1)),
		}},
		{"Lists", tell().lists(40, "b", 3, 0), []*story{tell().lists(40, "a", 3, 0), tell().ask(40, "b", gadgets, 200)}},
		{"Formats", tell().ask(40, "b", gadgets, 200, media("application/yaml", "application/yaml")), []*story{
			tell().ask(40, "b", gadgets, 200), tell().ask(40, "b", gadgets, 406, media("application/yaml", "application/yaml")),
			tell().ask(40, "a", gadgets, 200, media("application/yaml", "application/yaml")),
		}},
		{"ForgedHops", tell().ask(40, "b", ghosts, 404, forged), []*story{
			tell().ask(40, "b", widgets, 200, forged), tell().ask(40, "b", ghosts, 404), tell().ask(40, "b", gadgets, 0, forged),
		}},
		{"MergedDocuments", tell().discover(40, "b", "/apis", mergedDoc), []*story{tell().ask(40, "b", none, 503, verb(history.VerbDiscovery))}},
		{"OwnDocuments", tell().ask(40, "b", none, 200, document(history.VerbNoPeer, 200)), []*story{
			tell().discover(40, "b", "/apis", mergedDoc), tell().ask(40, "b", none, 503, verb(history.VerbNoPeer)),
		}},
		{"LegacyDocuments", tell().ask(40, "b", none, 200, document(history.VerbLegacy, 200)), []*story{tell().ask(40, "b", none, 406, verb(history.VerbLegacy))}},
		{"Owners", tell().put(10, gadget("o")).put(11, configMap("x", gadget("o"))), []*story{
			tell().put(11, configMap("x", gadget("o"))), tell().put(10, gadget("o"), configMap("x")),
		}},
		{"Descriptions", tell().ask(40, "b", none, 200, document(history.VerbOpenAPI, 200)), []*story{tell().ask(40, "b", none, 404, verb(history.VerbOpenAPI))}},
	} {
		t.Run(c.class, func(t *testing.T) {
			of := func(s *story) int {
				return int(reflect.ValueOf(NewFacts(s.h).pressure).FieldByName(c.class).Int())
			}
			if got := of(c.counts); got != 1 {
				t.Errorf("counted %d times, want once", got)
			}
			for i, s := range c.not {
				if got := of(s); got != 0 {
					t.Errorf("near miss %d is counted %d times", i, got)
				}
			}
		})
	}
	if got, want := len(pressures), reflect.TypeFor[history.Pressure]().NumField(); got != want {
		t.Errorf("%d classes for %d fields", got, want)
	}
}

// A class that no invariant demands could never make a verdict inconclusive.
func TestEveryClassOfPressureIsDemandedByAnInvariant(t *testing.T) {
	for i, p := range pressures {
		var least history.Pressure
		reflect.ValueOf(&least).Elem().Field(i).SetInt(1 << 20)
		s := rich(false, names()...).need(least)
		demanding := 0
		for _, v := range Judge(s.h) {
			if v.Outcome == OutcomeInconclusive && strings.Contains(v.Reason, " of at least 1048576 "+p.what) {
				demanding++
			}
		}
		if demanding == 0 {
			t.Errorf("no invariant is inconclusive without %s", p.what)
		}
		for _, v := range Judge(rich(false).need(least).h) {
			if v.Outcome != OutcomePass {
				t.Errorf("%s is %s (%s), though the scenario is about something else", v.Name, v.Outcome, v.Reason)
			}
		}
	}
}
