package run

import (
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/scenario"
)

func TestABinaryIsThereOrMissing(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	s := Spec{Scenario: "quiet", Backend: scenario.BackendLocal, From: "v1.36.3", To: "v1.37.1", Etcd: "v3.6.8"}
	for _, c := range []struct {
		own  string
		want []string
	}{
		{"", []string{"binaries that the first run downloads or builds: etcd v3.6.8, kube-apiserver v1.36.3, kube-apiserver v1.37.1"}},
		{"kube-apiserver@v1.37.1=/bin/true", []string{
			"binaries that are there: kube-apiserver v1.37.1", "binaries that the first run downloads or builds: etcd v3.6.8, kube-apiserver v1.36.3",
		}},
	} {
		t.Setenv("SKEWPROOF_BINARIES", c.own)
		p, err := s.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.binaries(); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("own %q: %q, error %v; want %q", c.own, got, err, c.want)
		}
	}
}

func TestTheSimulatorIsAlwaysReady(t *testing.T) {
	p, err := Spec{Scenario: "quiet", Backend: scenario.BackendSim}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if facts, err := p.Ready(t.Context()); err != nil || len(facts) > 0 {
		t.Errorf("facts %q, error %v", facts, err)
	}
}
