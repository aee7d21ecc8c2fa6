package upgrade

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim/recorded"
)

// differing are fields that do not exist, most of them of kinds that do not exist. So nothing in
// the code can know them.
var differing = []recorded.FieldSkew{
	field("apps", "v1", "deployments", "spec.template.spec.volumes[*].beam", recorded.FateKept, true, "BeamGate"),
	field("apps", "v1", "deployments", "spec.template.spec.volumes[*].beam.width", recorded.FateKept, true, "BeamGate"),
	field("batch", "v1", "cronads", "spec.jobTemplate.spec.template.spec.volumes[*].beam", recorded.FateKept, true, "BeamGate"),
	field("", "v1", "pads", "spec.volumes[*].beam", recorded.FateKept, false, "BeamGate"),
	field("batch", "v1", "cronads", "spec.jobTemplate.spec.quiver", recorded.FateKept, true, ""),
	field("", "v1", "pads", "spec.echo", recorded.FateLost, false, ""),
	field("apps", "v1", "gadgets", "spec.maxTwirl", recorded.FateKept, false, ""),
	{GVR: history.GVR{Group: "apps", Version: "v1", Resource: "gadgets"}, Path: "spec.template.spec.grumble", Copied: true, Update: recorded.FateKept,
		Older: recorded.FieldSide{Outcome: recorded.FieldRefused}, Newer: recorded.FieldSide{Outcome: recorded.FieldStored}},
	{GVR: history.GVR{Group: "apps", Version: "v1", Resource: "gadgets"}, Path: "spec.unknown",
		Older: recorded.FieldSide{Outcome: recorded.FieldDropped}, Newer: recorded.FieldSide{Outcome: recorded.FieldDropped}},
	{GVR: history.GVR{Group: "apps", Version: "v1", Resource: "gadgets"}, Path: "spec.ceased",
		Older: recorded.FieldSide{Outcome: recorded.FieldStored}, Newer: recorded.FieldSide{Outcome: recorded.FieldDropped}},
	{GVR: history.GVR{Group: "apps", Version: "v1", Resource: "gadgets"}, Path: "spec.harmless", Values: []string{recorded.FieldAbsent},
		Older: recorded.FieldSide{Outcome: recorded.FieldStored}, Newer: recorded.FieldSide{Outcome: recorded.FieldDefaulted}},
	{GVR: history.GVR{Group: "apps", Version: "v1", Resource: "gadgets"}, Path: "spec.strict", Values: []string{recorded.FieldOne, "A b"},
		Older: recorded.FieldSide{Outcome: recorded.FieldStored}, Newer: recorded.FieldSide{Outcome: recorded.FieldRefused}},
	{GVR: history.GVR{Group: "apps", Version: "v1", Resource: "gadgets"}, Path: "spec.relaxed",
		Older: recorded.FieldSide{Outcome: recorded.FieldRefused}, Newer: recorded.FieldSide{Outcome: recorded.FieldStored}},
	{GVR: history.GVR{Group: "apps", Version: "v1", Resource: "gadgets"}, Path: "spec.frozen", Changed: true,
		Older: recorded.FieldSide{Outcome: recorded.FieldStored}, Newer: recorded.FieldSide{Outcome: recorded.FieldRefused}},
	{GVR: history.GVR{Group: "apps", Version: "v1", Resource: "gadgets"}, Path: "spec.invalid",
		Older: recorded.FieldSide{Outcome: recorded.FieldDropped}, Newer: recorded.FieldSide{Outcome: recorded.FieldRefused}},
}

func field(group, version, resource, path string, update recorded.FieldFate, copied bool, gate string) recorded.FieldSkew {
	f := recorded.FieldSkew{
		GVR: history.GVR{Group: group, Version: version, Resource: resource}, Path: path, Update: update, Copied: copied,
		Older: recorded.FieldSide{Outcome: recorded.FieldDropped}, Newer: recorded.FieldSide{Outcome: recorded.FieldStored},
	}
	if gate != "" {
		f.Gates, f.Emulated = []recorded.FieldGate{{Name: gate}}, true
	}
	return f
}

// skewed makes the plan of v1.36.3 → v1.37.1 with other recordings than those of this repository,
// in all forms.
func skewed(t *testing.T, flags Flags, fields []recorded.FieldSkew, behaviour map[string]string) (p reports.UpgradePlan, text, wide string) {
	t.Helper()
	dir := t.TempDir()
	table := recorded.FieldTable{From: "v1.36.3", To: "v1.37.1", Counts: recorded.FieldCounts{Judged: 1}, Fields: fields}
	if err := recorded.WriteFields(dir, table); err != nil {
		t.Fatal(err)
	}
	for version, of := range behaviour {
		body, err := os.ReadFile(filepath.Join("../../sim/recorded/documents/behaviour", of+".json"))
		if err == nil {
			err = recorded.WriteBehaviour(dir, version, body)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	flags.Recordings = []string{dir}
	p = planOf(t, "v1.36.3", "v1.37.1", flags)
	var forms [5]bytes.Buffer
	if err := errors.Join(reports.WritePlanText(&forms[0], p), reports.WritePlanWide(&forms[1], p), reports.WritePlanHTML(&forms[2], p),
		reports.WritePlanMarkdown(&forms[3], p), reports.WritePlanJSON(&forms[4], p)); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(forms[0].String(), "\n"); lines > 150 {
		t.Errorf("%d lines", lines)
	}
	for _, f := range forms[1:] {
		wide += f.String()
	}
	spaces := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	return p, spaces(forms[0].String()), spaces(wide)
}

// A field that can do harm has one line, whatever the number of kinds that have it. The worst is
// the first harm, with what prevents it.
func TestFieldsThatDoHarm(t *testing.T) {
	p, text, wide := skewed(t, Flags{}, differing, nil)
	want := []reports.PlanFieldHarm{
		{Path: "spec.volumes[*].beam", Kinds: []string{"deployments"}, Harm: reports.PlanNeverSettles, By: "v1.36.3", Gates: []string{"BeamGate"}, Emulated: true},
		{Path: "spec.grumble", Kinds: []string{"gadgets"}, Harm: reports.PlanStuck, By: "v1.36.3"},
		{Path: "spec.quiver", Kinds: []string{"cronads"}, Harm: reports.PlanCopied, By: "v1.36.3"},
		{Path: "spec.echo", Kinds: []string{"pads"}, Harm: reports.PlanLost, By: "v1.36.3"},
		{Path: "spec.maxTwirl", Kinds: []string{"gadgets"}, Harm: reports.PlanDropped, By: "v1.36.3"},
		{Path: "spec.ceased", Kinds: []string{"gadgets"}, Harm: reports.PlanDropped, By: "v1.37.1"},
		{Path: "spec.strict", Kinds: []string{"gadgets"}, Values: []string{"A b"}, Harm: reports.PlanRefused, By: "v1.37.1"},
		{Path: "spec.relaxed", Kinds: []string{"gadgets"}, Harm: reports.PlanRefused, By: "v1.36.3"},
		{Path: "spec.frozen", Kinds: []string{"gadgets"}, Harm: reports.PlanFrozen, By: "v1.37.1"},
	}
	if diff := cmp.Diff(want, p.FieldHarms); diff != "" {
		t.Error(diff)
	}
	if first := p.Harms[0]; !strings.Contains(first.What, "never settles") || !strings.Contains(first.Prevent, "--emulated-version=1.36") ||
		!strings.Contains(first.Prevent, "BeamGate") || len(p.Fields) != len(differing)-1 { // both drop one
		t.Errorf("%d fields, the first harm is %+v", len(p.Fields), first)
	}
	for _, h := range want {
		shown := 1
		if h.Harm == reports.PlanRefused || h.Harm == reports.PlanFrozen {
			shown = 0
		}
		if says := h.Harm + " at " + h.By + ": " + h.Path; strings.Count(text, says) != shown {
			t.Errorf("the brief plan says %d times %q", strings.Count(text, says), says)
		}
	}
	if !strings.Contains(wide, "spec.frozen, in an object that exists") {
		t.Error("the full forms do not say that a field is refused on change")
	}
	for _, f := range differing {
		if unknown := f.Path == "spec.unknown"; strings.Count(wide, f.Path) < 3 != unknown {
			t.Errorf("%s is in the full forms %d times", f.Path, strings.Count(wide, f.Path))
		}
	}
	if strings.Contains(text, "spec.harmless") || strings.Contains(text, "spec.invalid") || strings.Contains(text, "spec.unknown") {
		t.Error("what does no harm is in the brief plan")
	}
	for _, list := range [][]string{{p.Checklist[5].Text}, p.Back} {
		if !strings.Contains(strings.Join(list, " "), "field that the versions treat differently") {
			t.Errorf("no word about fields in %q", list)
		}
	}
}

// Without an entry in the recordings a plan does not speak of it: nothing of this stands in code.
func TestWithoutItsRecordingTheTextVanishes(t *testing.T) {
	const bundles = "certificates.k8s.io/v1/clustertrustbundles"
	for _, c := range []struct {
		name      string
		fields    []recorded.FieldSkew
		behaviour map[string]string
		is        bool
		words     []string
	}{
		{"as recorded", differing, nil, true, []string{"never settles", "emulated-version", "BeamGate", "answers nodes 403", "by itself", "nodes get 403"}},
		{"no field differs", nil, nil, false, []string{"never settles", "emulated-version", "BeamGate", "treat differently", "dropped in silence", "lost on update", "refused to controllers"}},
		{"v1.36.3 permits the same", differing, map[string]string{"v1.36.3": "v1.37.1"}, false, []string{"answers nodes 403", "nodes get 403"}},
		{"controllers create the same", differing, map[string]string{"v1.37.1": "v1.36.3"}, false, []string{"clustertrustbundle-publisher"}},
	} {
		for _, flags := range []Flags{{}, with("", peerCA)} {
			p, text, wide := skewed(t, flags, c.fields, c.behaviour)
			for _, word := range c.words {
				if strings.Contains(text+wide, word) != c.is {
					t.Errorf("%s, %+v: it is %v that the plan says %q", c.name, flags, !c.is, word)
				}
			}
			if byItself := byThemselves(p, ""); strings.Contains(byItself, bundles) != (c.behaviour == nil) {
				t.Errorf("%s: %q", c.name, byItself)
			}
		}
	}
}

// The node authorizer refuses what the older version does not know, with the verbs that the kubelet
// of the newer one needs, and the plan says so with every proxy.
func TestTheKubeletIsRefused(t *testing.T) {
	for _, flags := range []Flags{{}, with("", peerCA)} {
		p := planOf(t, "v1.36.3", "v1.37.1", flags)
		refused := map[string]string{}
		for _, r := range p.Appears {
			if len(r.RefusedNodes) > 0 {
				refused[r.Resource] = strings.Join(r.RefusedNodes, " ")
			}
		}
		if diff := cmp.Diff(map[string]string{"clustertrustbundles": "get list watch", "podcertificaterequests": "create list watch"}, refused); diff != "" {
			t.Error(diff)
		}
		found := false
		for _, h := range p.Harms {
			found = found || strings.Contains(h.What, "403") && strings.Contains(h.Whom, "kubelet") && strings.Contains(h.What, "no proxy helps")
		}
		if !found {
			t.Errorf("%+v: the harms lack the kubelet: %+v", flags, p.Harms)
		}
	}
}

// A plan says first that an upgrade skips a minor version, and finding 48 applies.
func TestSkippedMinorVersions(t *testing.T) {
	for from, want := range map[string]bool{"v1.34.4": true, "v1.35.4": true, "v1.36.3": false} {
		p := planOf(t, from, "v1.37.1", Flags{})
		first := strings.HasPrefix(p.Sentence, "Kubernetes does not support")
		applies := slices.ContainsFunc(p.Findings, func(f reports.PlanFinding) bool { return f.Number == 48 })
		if first != want || applies != want {
			t.Errorf("%s: it says so: %t, finding 48 applies: %t; want %t; it begins: %s", from, first, applies, want, p.Sentence)
		}
	}
}

// A plan counts only what differs with the flags of the servers, and what the plan itself advises
// helps. What v1.37.1 serves while it emulates v1.36 was read from a real server.
func TestFlagsMakeDifferencesVanish(t *testing.T) {
	settles := func(p reports.UpgradePlan) bool {
		return !slices.ContainsFunc(p.FieldHarms, func(h reports.PlanFieldHarm) bool { return h.Harm == reports.PlanNeverSettles })
	}
	p := planOf(t, "v1.36.3", "v1.37.1", Flags{}.With(emulatedVersion, "1.36"))
	if !settles(p) || len(p.Appears) != 1 || p.Appears[0].Name() != "storage.k8s.io/v1/csinodes/status" || !strings.Contains(strings.Join(p.Notes, " "), "v1.37.1 emulates v1.36") {
		t.Errorf("v1.37.1 emulates v1.36: %+v, fields %+v, notes %q", p.Appears, p.FieldHarms, p.Notes)
	}
	for _, h := range p.Harms {
		if strings.Contains(h.What, "garbage collector") {
			t.Errorf("no whole kind differs, but: %s", h.What)
		}
	}
	off := with("ClusterTrustBundleProjection=false,PodCertificateRequest=false", "")
	if p = planOf(t, "v1.36.3", "v1.37.1", off); !settles(p) || settles(planOf(t, "v1.36.3", "v1.37.1", Flags{})) {
		t.Errorf("without the feature gates that differ: %+v", p.FieldHarms)
	}
}
