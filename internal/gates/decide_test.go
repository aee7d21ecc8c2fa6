package gates

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"github.com/skewproof/skewproof/sim/recorded"
)

func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// Every release whose documents are recorded has a recording of flags, which Kubernetes' own
// package takes as it is.
func TestRecordings(t *testing.T) {
	for _, name := range recorded.Names() {
		r, err := Find(name)
		if err != nil || r.Version != name {
			t.Errorf("%s: recording of %q, error %v", name, r.Version, err)
			continue
		}
		if r.Source != "" {
			continue
		}
		if len(r.APIs) < 50 || len(r.Flags) < 100 || len(r.Gates) < 100 {
			t.Errorf("%s: %d APIs, %d flags, %d gates", name, len(r.APIs), len(r.Flags), len(r.Gates))
		}
		d, err := Decide(name, nil)
		if err != nil || !d.Starts || len(d.Notes) > 0 {
			t.Errorf("%s with the default flags: %+v, error %v", name, d, err)
		}
		i := slices.IndexFunc(r.Gates, func(g Gate) bool { return g.Name == Proxy })
		if stages := r.Gates[i].Stages; name >= "v1.31" && !slices.Equal(stages, ofProxy.Stages[:len(stages)]) {
			t.Errorf("%s: the stages of the proxy's gate are %v", name, stages)
		}
		if on := name >= "v1.36"; d.Gate(Proxy) != on {
			t.Errorf("%s: the feature is on: %t", name, d.Gate(Proxy))
		}
	}
}

// Where only gates are recorded, those are decided about, and the decision says what was not
// checked.
func TestOnlyGatesAreRecorded(t *testing.T) {
	for list, want := range map[string]string{
		"": "", "Invented=true": "unrecognized feature gate: Invented", "SidecarContainers=true": "unrecognized feature gate: SidecarContainers",
		"StatefulSetRecreateStrategy=false": "", "WatchList=perhaps": "invalid value of WatchList",
	} {
		d, err := Decide("v1.38.0-beta.0", []Set{{Name: featureGates, Value: list}, {Name: PeerCAFile, Value: "/ca.crt"}, {Name: "any-flag", Value: "x"},
			{Name: "allow-privileged", Bare: true}, {Name: featureGates, Value: "$GATES"}, {Name: runtimeConfig, Value: "$APIS"}})
		if err != nil || d.Starts != (want == "") || !strings.Contains(strings.Join(d.Reasons, "\n"), want) || !strings.Contains(strings.Join(d.Notes, ""), "Not checked, since not recorded: flags of v1.38.0-beta.0") {
			t.Errorf("%q: %+v, error %v", list, d, err)
		}
		if d.Starts && (!d.Gate(Proxy) || d.Value(PeerCAFile) != "/ca.crt" || d.Gate("StatefulSetRecreateStrategy") == (list != "")) {
			t.Errorf("%q: %+v", list, d)
		}
	}
	if d, err := Decide("v1.38.0", nil); err != nil || len(d.Notes) != 2 || !strings.Contains(d.Notes[0], "Those of v1.38.0-beta.0 stand in") {
		t.Errorf("v1.38.0: %+v, error %v", d, err)
	}
}

// The nearest patch stands in for a version that is not recorded, and the decision says so.
func TestWithoutARecording(t *testing.T) {
	removed := []Set{{Name: featureGates, Value: "SidecarContainers=true"}}
	d, err := Decide("v1.37.0", removed)
	if err != nil || d.Starts || len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "Those of v1.37.1 stand in") {
		t.Errorf("v1.37.0: %+v, error %v", d, err)
	}
	d, err = Decide("v1.99.0", append(removed, Set{Name: PeerCAFile, Value: "/ca.crt"}))
	if err != nil || !d.Starts || !d.Gate(Proxy) || d.Value(PeerCAFile) != "/ca.crt" || !strings.Contains(strings.Join(d.Notes, ""), "Not checked") {
		t.Errorf("v1.99.0: %+v, error %v", d, err)
	}
	if d, err = Decide("v1.29.0", []Set{{Name: PeerCAFile, Value: "/ca.crt"}}); err != nil || d.Starts || d.Gate(Proxy) {
		t.Errorf("v1.29.0: %+v, error %v", d, err)
	}
}

// Before v1.31 there is no emulation, and no prefix of a component.
func TestOlderVersions(t *testing.T) {
	for _, c := range []struct {
		version, gates, reason string
	}{
		{"v1.30.14", "kube:UnknownVersionInteroperabilityProxy=true", "unrecognized feature gate: kube:UnknownVersionInteroperabilityProxy"},
		{"v1.30.14", "UnknownVersionInteroperabilityProxy=true", "feature requires StorageVersionAPI feature flag to be enabled"},
		{"v1.30.14", "UnknownVersionInteroperabilityProxy=true,StorageVersionAPI=true", ""},
		{"v1.34.4", "UnknownVersionInteroperabilityProxy=true,AuthorizeWithSelectors=false", "locked to true"},
		{"v1.34.4", "UnknownVersionInteroperabilityProxy=true,PodCertificateRequest=true,AuthorizeNodeWithSelectors=true", ""},
		{"v1.30.14", "UnknownVersionInteroperabilityProxy=true,AllAlpha=true,AllBeta=false",
			`the "ServiceAccountTokenNodeBinding" feature gate can only be enabled if the "ServiceAccountTokenNodeBindingValidation" feature gate`},
		{"v1.30.14", "Invented=true", "unrecognized feature gate: Invented"},
		{"v1.34.4", "kube:UnknownVersionInteroperabilityProxy=true", ""},
	} {
		d, err := Decide(c.version, []Set{{Name: featureGates, Value: c.gates}, {Name: PeerCAFile, Value: "/ca.crt"}})
		if err != nil || d.Starts != (c.reason == "") || !strings.Contains(strings.Join(d.Reasons, "\n"), c.reason) || d.Starts && !d.Gate(Proxy) {
			t.Errorf("%s with %s: %+v, error %v", c.version, c.gates, d, err)
		}
	}
}

func TestCheckList(t *testing.T) {
	for list, want := range map[string]string{
		"":                                        "",
		"A=true, kube:B = F,":                     "",
		"UnknownVersionInteroperabilityProxy":     `did you mean "UnknownVersionInteroperabilityProxy=true"?`,
		"UnknownVersionInteropProxy=on":           `did you mean "UnknownVersionInteroperabilityProxy=true"?`,
		"AllBeta=off":                             `did you mean "AllBeta=false"?`,
		"AllAlpha=true;AllBeta=false":             `did you mean "AllAlpha=true,AllBeta=false"?`,
		"AllAlpha=true AllBeta=false":             `did you mean "AllAlpha=true,AllBeta=false"?`,
		"AllAlpha: true":                          `did you mean "AllAlpha=true"?`,
		"=true":                                   "did you mean",
		"AllBeta:false":                           `did you mean "AllBeta=false"?`,
		"kube:AllBeta:false,kube:AllAlpha=on":     `did you mean "kube:AllBeta=false,kube:AllAlpha=true"?`,
		"map[AllBeta:true AllAlpha:false]":        `did you mean "AllBeta=true,AllAlpha=false"?`,
		`AllBeta="false"`:                         `did you mean "AllBeta=false"?`,
		"AllBeta false":                           `did you mean "AllBeta=false"?`,
		"true":                                    `did you mean "UnknownVersionInteroperabilityProxy=true"?`,
		strings.Repeat("Nothing,", 1e5):           `did you mean "UnknownVersionInteroperabilityProxy=true"?`,
		"AllAlpha=true,=,APIServerIdentity=false": "invalid value of : , err",
	} {
		err := CheckList(list)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || len(err.Error()) > 5000) {
			t.Errorf("%q: error %v, want %q", list, err, want)
		}
	}
}

// Flips agree with what servers decide without flags, and a gate comes with all that need it.
func TestFlips(t *testing.T) {
	locked, needed := 0, 0
	for _, pair := range [][2]string{{"v1.35.4", "v1.36.3"}, {"v1.36.3", "v1.37.1"}} {
		flips, err := Flips(pair[0], pair[1])
		if err != nil {
			t.Fatal(err)
		}
		var sides [2]Decision
		for i, version := range pair {
			if sides[i], err = Decide(version, nil); err != nil {
				t.Fatal(err)
			}
		}
		newer, err := Find(pair[1])
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range newer.Gates {
			i := slices.IndexFunc(flips, func(f Flip) bool { return f.Name == g.Name })
			if was, is := sides[0].Gate(g.Name), sides[1].Gate(g.Name); was != is != (i >= 0) || i >= 0 && flips[i].On != is {
				t.Errorf("%v: %s is %t and %t, flip %d", pair, g.Name, was, is, i)
			}
			for _, needs := range g.Needs {
				if n := slices.IndexFunc(flips, func(f Flip) bool { return f.Name == needs }); n >= 0 && sides[1].Gate(g.Name) && !slices.Contains(flips[n].Dependents, g.Name) {
					t.Errorf("%v: %s needs %s, which has the dependents %q", pair, g.Name, needs, flips[n].Dependents)
				}
			}
			if i >= 0 && flips[i].Locked {
				locked++
			}
			if i >= 0 {
				needed += len(flips[i].Dependents)
			}
		}
		if len(flips) < 10 {
			t.Errorf("%v: %d flips", pair, len(flips))
		}
	}
	if locked == 0 || needed == 0 {
		t.Errorf("%d flips are locked, and %d gates need one", locked, needed)
	}
	if flips, err := Flips("v1.37.1", "v1.37.1"); err != nil || len(flips) > 0 {
		t.Errorf("a version against itself: %v, error %v", flips, err)
	}
	if _, err := Flips("v1.37.1", "v1.99.0"); !errors.Is(err, recorded.ErrNoFlags) {
		t.Errorf("error %v", err)
	}
}
