package recorded

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestFieldsAreFound(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	kept := FieldTable{
		From: "v1.96.3", To: "v1.97.1", Counts: FieldCounts{Kinds: 2, Judged: 9, RefusedAlike: 1}, GatesTried: []string{"Foo"},
		Fields: []FieldSkew{{
			GVR: history.GVR{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment", Path: "spec.template.spec.foo[*].bar",
			Values: []string{FieldOne, "Baz"}, Older: FieldSide{Outcome: FieldDropped, Unknown: true, Says: `unknown field "foo"`},
			Newer:  FieldSide{Outcome: FieldDefaulted, Stored: json.RawMessage("3"), Elsewhere: []string{"spec.other"}},
			Update: FateKept, Gates: []FieldGate{{Name: "Foo", Locked: true, With: []string{"Bar"}}}, Copied: true,
		}},
		RefusedAlike: map[string]map[string]string{"v1/pods": {"spec.bar": "Forbidden"}},
	}
	for _, pair := range [][2]string{{"v1.96.3", "v1.97.1"}, {"v1.96.3", "v1.97.4"}, {"v1.96.5", "v1.97.1"}, {"v1.97.1", "v1.98.0-beta.0"}} {
		table := kept
		table.From, table.To = pair[0], pair[1]
		if err := WriteFields(dir, table); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range []struct {
		from, to, older, newer string
	}{
		{"v1.96.3", "v1.97.1", "v1.96.3", "v1.97.1"},
		{"v1.96.4", "v1.97.3", "v1.96.3", "v1.97.1"},
		{"v1.96.9", "v1.97.4", "v1.96.5", "v1.97.1"},
		{"v1.96.3", "v1.97.0", "v1.96.3", "v1.97.1"},
		{"v1.97.1", "v1.98.0-beta.0", "v1.97.1", "v1.98.0-beta.0"},
	} {
		got, err := Fields(one.from, one.to, filepath.Join(dir, "missing"), other, dir)
		if err != nil || got.From != one.older || got.To != one.newer {
			t.Fatalf("%s to %s: found %s to %s, error %v", one.from, one.to, got.From, got.To, err)
		}
		kept.From, kept.To = got.From, got.To
		if kept.Fields[0].Newer.Stored = slices.Clip(kept.Fields[0].Newer.Stored); !reflect.DeepEqual(got, kept) {
			t.Errorf("found %+v, want %+v", got, kept)
		}
	}
	for _, pair := range [][2]string{{"v1.95.0", "v1.96.3"}, {"v1.97.1", "v1.96.3"}, {"v1.96.3", "v1.98.0"}, {"", ""}} {
		if _, err := Fields(pair[0], pair[1], dir); !errors.Is(err, ErrNoFields) {
			t.Errorf("%q: error %v", pair, err)
		}
	}
	for _, body := range []string{"{", "{}", `{"from":"v1.96.3","to":"v1.97.2","counts":{"judged":3}}`} {
		if err := os.WriteFile(filepath.Join(dir, fieldsFolder, "v1.96.3-v1.97.1.json"), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Fields("v1.96.3", "v1.97.1", dir); err == nil || errors.Is(err, ErrNoFields) {
			t.Errorf("%s: error %v", body, err)
		}
	}
}

// Every recorded table is about both of its releases, judged nearly everything, and has the fields
// that are known to do harm.
func TestRecordedFields(t *testing.T) {
	deployments, sets := history.GVR{Group: "apps", Version: "v1", Resource: "deployments"}, history.GVR{Group: "apps", Version: "v1", Resource: "statefulsets"}
	status := history.GVR{Version: "v1", Resource: "pods/status"}
	known := map[string][]FieldSkew{"v1.36.3": {{GVR: status, Path: "status.resources", Emulated: true, Update: FateKept}}, "v1.37.1": {
		{GVR: deployments, Path: "spec.template.spec.volumes[*].projected.sources[*].clusterTrustBundle", Copied: true, Emulated: true, Update: FateKept},
		{GVR: deployments, Path: "spec.template.spec.volumes[*].projected.sources[*].podCertificate", Copied: true, Emulated: true, Update: FateKept},
		{GVR: sets, Path: "spec.updateStrategy.rollingUpdate.maxUnavailable", Emulated: true, Update: FateKept},
	}}
	for _, pair := range [][2]string{{"v1.35.4", "v1.36.3"}, {"v1.36.3", "v1.37.1"}} {
		table, err := Fields(pair[0], pair[1])
		if err != nil || table.From != pair[0] || table.To != pair[1] {
			t.Fatalf("%v: found %s to %s, error %v", pair, table.From, table.To, err)
		}
		if c := table.Counts; c.Kinds < 50 || c.Subresources < 30 || c.Judged < 2000 || 10*c.RefusedAlike > c.Judged+c.RefusedAlike+c.NotTried {
			t.Errorf("%v: counts %+v", pair, c)
		}
		if len(table.GatesTried) < 10 || len(table.Fields) < 10 {
			t.Errorf("%v: %d fields, %d gates", pair, len(table.Fields), len(table.GatesTried))
		}
		for _, want := range known[pair[1]] {
			i := slices.IndexFunc(table.Fields, func(f FieldSkew) bool {
				return f.GVR == want.GVR && f.Path == want.Path && f.Older.Outcome == FieldDropped && f.Newer.Outcome == FieldStored
			})
			if i < 0 {
				t.Errorf("%v: %s %s is missing", pair, want.GVR, want.Path)
			} else if f := table.Fields[i]; f.Copied != want.Copied || f.Emulated != want.Emulated || f.Update != want.Update || len(f.Gates) != 1 || f.Older.Unknown {
				t.Errorf("%v: %+v", pair, f)
			}
		}
	}
}

// A side says in a few words all that it does.
func TestFieldSideSays(t *testing.T) {
	for want, side := range map[string]FieldSide{
		"dropped, and yet owned in managedFields": {Outcome: FieldDropped, Owned: true},
		"defaulted to 3": {Outcome: FieldDefaulted, Stored: json.RawMessage("3")},
		"defaulted, with its own status.a, spec.b": {Outcome: FieldDefaulted, Elsewhere: []string{"status.a", "spec.b"}},
	} {
		if got := side.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
