package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/search"
)

// definitionSteps define resources that collide with built-in resources of one version, and with
// each other. After each step, real kube-apiservers and the simulator must serve the same.
func definitionSteps() []scenario.Step {
	const migration, resources, storage, own = "storagemigration.k8s.io", "resource.k8s.io", "storage.k8s.io", "stable.example.com"
	def := func(group, resource string, versions ...string) scenario.Definition {
		return scenario.Definition{Group: group, Resource: resource, Versions: versions}
	}
	gadgets, gizmos, gears := def(own, "gadgets", "v1"), def(own, "gizmos", "v1beta1", "v1"), def(own, "gears", "v2")
	gadgets.Kind, gadgets.ShortNames, gadgets.Storage = "Gadget", []string{"g"}, "v1"
	gizmos.Kind, gizmos.Categories = "Gadget", []string{"all"}
	gears.ShortNames = []string{"g"}
	dropped := gadgets
	dropped.Versions, dropped.Storage = []string{"v2"}, "v2"
	gauges := def(migration, "gauges", "v1")
	gauges.Aggregated = true
	preferring := def("metrics.example.com", "gauges", "v1beta1", "v1")
	preferring.Aggregated, preferring.Preferred = true, "v1beta1"
	var steps []scenario.Step
	add := func(action scenario.Action, d scenario.Definition) {
		steps = append(steps, scenario.Step{Action: action, Definition: &d}, scenario.Step{Action: scenario.Soak, For: 5 * time.Second})
	}
	for _, d := range []scenario.Definition{
		gadgets,
		gizmos,  // refused: the kind of gadgets
		gears,   // refused: the short name of gadgets
		dropped, // refused: gadgets are stored as v1
		def(migration, "storageversionmigrations", "v1"),   // built in, in the newer version
		def(migration, "gizmos", "v1", "v9"),               // the newer version has this version built in
		def(resources, "devicetaintrules", "v1"),           // both have the version, and only the newer has the resource
		def(storage, "volumeattributesclasses", "v1beta1"), // built in, in the older version
		preferring,
		gauges, // replaces the newer server's built-in group version
	} {
		add(scenario.Define, d)
	}
	add(scenario.Undefine, gadgets) // gizmos and gears now get their names
	add(scenario.Undefine, gauges)
	add(scenario.Undefine, def(migration, "gizmos", "v1"))
	return steps
}

// outcomes returns what each server serves in the groups of the definitions after each step, and
// whether the control plane refused the step.
func outcomes(t *testing.T, h *history.History, definitions int) []string {
	t.Helper()
	groups := map[string]bool{}
	for _, s := range definitionSteps() {
		if s.Definition != nil {
			groups[s.Definition.Group] = true
		}
	}
	var all []string
	for i, s := range h.Steps {
		if !strings.HasPrefix(s.Sentence, "define ") && !strings.HasPrefix(s.Sentence, "delete the definition") {
			continue
		}
		until := h.End.At
		if next := slices.IndexFunc(h.Steps[i+1:], func(s history.Step) bool { return s.Disturbs }); next >= 0 {
			until = h.Steps[i+1+next].Start
		}
		said := fmt.Sprintf("%s, refused %t", s.Sentence, s.Refused != "")
		for _, server := range []string{"a", "b"} {
			var last *history.Served
			for j := range h.Served {
				if served := &h.Served[j]; served.Server == server && served.At < until && (last == nil || served.At >= last.At) {
					last = served
				}
			}
			if last == nil {
				t.Fatalf("%s: no document of %s", s.Sentence, server)
			}
			said += "\n  " + server + ":"
			for _, r := range h.Documents[last.Document].Resources {
				if groups[r.Group] {
					said += " " + r.GVR.String() + "=" + r.Kind
				}
			}
		}
		all = append(all, said)
	}
	if len(all) != definitions {
		t.Fatalf("%d steps about definitions, want %d", len(all), definitions)
	}
	return all
}

// The simulator models definitions like real kube-apiservers: which ones are refused, which server
// serves them, and in which order discovery lists them.
func TestDefinitionsFromTheSkew(t *testing.T) {
	onlyWithAll(t)
	needsCluster(t)
	steps := definitionSteps()
	r := &search.Repro{
		Schema: search.ReproSchema, Spec: search.Spec{Policy: "none", From: "v1.36.3", To: "v1.37.1", Servers: 2},
		Invariant: "NoFalseNotFound", Signature: invariant.Signature{Invariant: "NoFalseNotFound"}, Hash: "0",
		Case: sim.Case{Servers: []scenario.Server{{Name: "a", Version: "v1.37.1"}, {Name: "b", Version: "v1.36.3"}}, Steps: steps},
	}
	simulated, err := r.Run(false)
	must(t, err)
	body, err := r.Encode()
	must(t, err)
	file, dir := filepath.Join(t.TempDir(), "definitions.json"), filepath.Join(t.TempDir(), "run")
	must(t, os.WriteFile(file, body, 0o600))
	ran := run(t, "replay", file, "--backend", "local", "--out", dir)
	t.Logf("exit code %d\n%s", ran.code, ran.output)
	h, err := history.ReadFile(filepath.Join(dir, "history.jsonl"))
	must(t, err)
	want, got := outcomes(t, simulated.History, len(steps)/2), outcomes(t, h, len(steps)/2)
	returned := false
	for i := range want {
		returned = returned || strings.HasPrefix(want[i], "delete the definition of gauges.")
		switch {
		case want[i] == got[i]:
		case returned && sameButFor(want[i], got[i], "storagemigration.k8s.io/v1", "storagemigration.k8s.io/v1/gauges=gauges"):
			t.Logf("a server still lists gauges, which are gone (docs/simulator.md says why, in what the simulator leaves out):\n%s", got[i])
		default:
			t.Errorf("in the simulator:\n%s\non real servers:\n%s", want[i], got[i])
		}
	}
	// The newer server has another version of the group built in. It lists the custom resource, and
	// answers 404. The older server does not have the group, and serves the custom resource.
	beside := history.GVR{Group: "storagemigration.k8s.io", Version: "v9", Resource: "gizmos"}
	if newer, older := succeeded(h, beside, "a"), succeeded(h, beside, "b"); newer > 0 || older == 0 {
		t.Errorf("of the requests for %s, %d succeeded at the newer server, and %d at the older one; want none, and some", beside, newer, older)
	}
}

// sameButFor reports whether two outcomes agree, but for servers that list stale, and nothing else,
// in a group version. kube-apiserver does so if an APIService that named a service is replaced by a
// local one before the server has looked: a CustomResourceDefinition in the group version lets
// every server create the local one at once, so it is a race.
func sameButFor(want, got, groupVersion, stale string) bool {
	wanted, gotten := strings.Split(want, "\n"), strings.Split(got, "\n")
	return len(wanted) == len(gotten) && !slices.ContainsFunc(wanted, func(line string) bool {
		other := gotten[slices.Index(wanted, line)]
		return line != other && (!strings.Contains(other, stale) || !slices.Equal(without(line, groupVersion), without(other, groupVersion, stale)))
	})
}

// without returns the words of a line that are no resources of a group version. If resources are
// given, others of that group version are kept, so that they make a difference.
func without(line, groupVersion string, resources ...string) []string {
	return slices.DeleteFunc(strings.Fields(line), func(word string) bool {
		return strings.HasPrefix(word, groupVersion+"/") && (len(resources) == 0 || slices.Contains(resources, word))
	})
}

func TestSameButForAStaleGroupVersion(t *testing.T) {
	const want = "delete\n  a: g/v1/x=X g/v1beta1/x=X\n  b: h/v1/y=Y"
	for got, same := range map[string]bool{
		want: true,
		"delete\n  a: g/v1/old=old g/v1beta1/x=X\n  b: h/v1/y=Y":              true,
		"delete\n  a: g/v1/old=old g/v1beta1/x=X\n  b: g/v1/old=old h/v1/y=Y": true,
		"delete\n  a: g/v1/old=old g/v1/x=X g/v1beta1/x=X\n  b: h/v1/y=Y":     false, // both
		"delete\n  a: g/v1beta1/x=X\n  b: h/v1/y=Y":                           false, // none
		"delete\n  a: g/v1/z=Z g/v1beta1/x=X\n  b: h/v1/y=Y":                  false, // another
		"delete\n  a: g/v1/old=old\n  b: h/v1/y=Y":                            false, // less in another version
		"delete\n  a: g/v1/old=old g/v1beta1/old=old\n  b: h/v1/y=Y":          false, // in another version
		"define\n  a: g/v1/old=old g/v1beta1/x=X\n  b: h/v1/y=Y":              false, // another step
		"delete\n  a: g/v1/old=old g/v1beta1/x=X":                             false,
	} {
		if sameButFor(want, got, "g/v1", "g/v1/old=old") != same {
			t.Errorf("the same as\n%s: want %t", got, same)
		}
	}
}

// succeeded counts the requests for a resource that succeeded at a server.
func succeeded(h *history.History, gvr history.GVR, server string) (n int) {
	for _, o := range h.Operations {
		if o.GVR == gvr && o.Server == server && o.Status >= 200 && o.Status < 300 {
			n++
		}
	}
	return n
}
