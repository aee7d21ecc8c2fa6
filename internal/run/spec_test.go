package run

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
)

// A Spec is data. A process must get exactly the Spec that was sent, whatever it contains.
func FuzzASpecSurvivesJSON(f *testing.F) {
	f.Add("quiet", "local", "v1.36.3", 3, 240.0, uint64(7), true, "kube-apiserver@v1.37.1=/x y", "a,b")
	f.Add("", "\"'", "\x00", -1, 1e-12, uint64(0), false, "", "")
	f.Fuzz(func(t *testing.T, name, backend, version string, servers int, qps float64, seed uint64, on bool, binary, context string) {
		want := Spec{
			Scenario: name, Backend: backend, Subject: backend, From: version, To: name, Etcd: version, Servers: servers, QPS: qps, Strict: on, OnlyReads: !on,
			Keep: on, NoLoad: on, Kubeconfig: context, Out: name, Label: context, Soak: time.Duration(servers),
		}
		if on {
			want.At = &servers
			want.RuntimeConfig, want.APIServerFlags = &name, []string{context, name}
			want.Seed, want.Contexts = &seed, []string{context, name}
		}
		if own := (binaries.Overrides{}); own.Set(binary) == nil {
			want.Binaries = own
		}
		encoded, err := json.Marshal(want)
		if err != nil {
			return // it contains a value that is not a number, which every plan refuses
		}
		if want.hasInvalidUTF8() {
			return
		}
		got, err := ReadSpec(bytes.NewReader(encoded))
		if err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s gives\n%+v, want\n%+v", encoded, got, want)
		}
	})
}

// hasInvalidUTF8 reports whether a string of the Spec is not valid UTF-8.
func (s Spec) hasInvalidUTF8() bool {
	all := []string{s.Scenario, s.Backend, s.From, s.Kubeconfig, s.Binaries.String()}
	return strings.ToValidUTF8(strings.Join(all, ""), "") != strings.Join(all, "")
}

func TestASpecWithAFieldThatNobodyKnowsIsRefused(t *testing.T) {
	for _, content := range []string{`{"scenario": "quiet", "speed": 9}`, `{"binaries": {"moon@v1": "x"}}`, "", "[]"} {
		if s, err := ReadSpec(strings.NewReader(content)); err == nil || !strings.Contains(err.Error(), "read the specification of a run") {
			t.Errorf("%s is read as %+v, error %v", content, s, err)
		}
	}
}
